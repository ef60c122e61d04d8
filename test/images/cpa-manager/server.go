package main

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

const serviceID = "cpa-manager-plus"

// panelPage stands for the real program's single-page application.
const panelPage = "<!doctype html>\n<title>cpa-manager stand-in</title>\n<p>This stand-in has no panel.</p>\n"

type server struct {
	cfg     config
	db      *store
	collect *collector
	started time.Time
}

func newServer(cfg config, db *store, collect *collector) *server {
	return &server{cfg: cfg, db: db, collect: collect, started: time.Now()}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", getOnly(s.health))
	mux.HandleFunc("/usage-service/info", getOnly(s.info))
	mux.HandleFunc("/status", getOnly(s.requireAdminKey(s.status)))
	mux.HandleFunc("/management.html", getOnly(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(panelPage))
	}))
	mux.Handle("/v0/management/", s.requireAdminKey(s.toCPA(true)))
	mux.HandleFunc("/v1/models", getOnly(s.toCPA(false)))
	mux.Handle("/{$}", http.RedirectHandler("/management.html", http.StatusTemporaryRedirect))
	return mux
}

// getOnly refuses every other method, HEAD too: the real program answers 405.
func getOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			httpjson.Error(w, http.StatusMethodNotAllowed, "method not allowed")
			return
		}
		next(w, r)
	}
}

// requireAdminKey accepts the stored admin key and no other, the management
// key neither.
func (s *server) requireAdminKey(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		credential, _, err := s.db.adminCredential(r.Context())
		if err != nil {
			internalError(w, err)
			return
		}
		if !credential.matches(bearerToken(r)) {
			httpjson.Error(w, http.StatusUnauthorized, "invalid admin key")
			return
		}
		next(w, r)
	}
}

func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	httpjson.Write(w, http.StatusOK, map[string]any{"ok": true, "service": serviceID})
}

func (s *server) info(w http.ResponseWriter, r *http.Request) {
	_, adminReady, err := s.db.adminCredential(r.Context())
	if err != nil {
		internalError(w, err)
		return
	}
	configured := s.cfg.configured()
	httpjson.Write(w, http.StatusOK, map[string]any{
		"service":            serviceID,
		"mode":               "embedded",
		"startedAt":          s.started.UnixMilli(),
		"configured":         configured,
		"adminReady":         adminReady,
		"projectInitialized": configured,
		"setupRequired":      adminReady && !configured,
		"dataKeyReady":       true,
	})
}

func (s *server) status(w http.ResponseWriter, r *http.Request) {
	events, err := s.db.countEvents(r.Context())
	if err != nil {
		internalError(w, err)
		return
	}
	httpjson.Write(w, http.StatusOK, map[string]any{
		"service":   serviceID,
		"dbPath":    s.cfg.dbPath,
		"events":    events,
		"collector": s.collect.currentStatus(),
	})
}

// toCPA passes requests on to cpa, with the management key or with the
// caller's own. The caller's address is appended to X-Forwarded-For, so cpa
// sees a remote caller as remote.
func (s *server) toCPA(withManagementKey bool) http.HandlerFunc {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(s.cfg.upstream)
			request.Out.Header["X-Forwarded-For"] = request.In.Header["X-Forwarded-For"]
			request.SetXForwarded()
			if withManagementKey {
				request.Out.Header.Set("Authorization", "Bearer "+s.cfg.managementKey)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			httpjson.Error(w, http.StatusBadGateway, err.Error())
		},
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.cfg.configured() {
			httpjson.Error(w, http.StatusPreconditionRequired, "usage service is not configured")
			return
		}
		proxy.ServeHTTP(w, r)
	}
}

func internalError(w http.ResponseWriter, err error) {
	slog.Error("request failed", "error", err)
	httpjson.Error(w, http.StatusInternalServerError, err.Error())
}
