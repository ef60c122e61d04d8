package main

import (
	"net/http"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

type server struct {
	live               *liveConfig
	managementPassword string // accepted beside the configured key; "" switches it off
	guard              *loginGuard
	usage              *usageQueue
}

func newServer(live *liveConfig, managementPassword string) *server {
	return &server{
		live:               live,
		managementPassword: managementPassword,
		guard:              newLoginGuard(),
		usage:              newUsageQueue(),
	}
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	// A GET pattern answers HEAD as well.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		httpjson.Write(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		httpjson.Write(w, http.StatusOK, map[string]any{
			"message":   "CLI Proxy API Server",
			"endpoints": []string{"POST /v1/chat/completions", "GET /v1/models"},
		})
	})

	for _, provider := range []string{"anthropic", "antigravity", "codex"} {
		mux.HandleFunc("GET /"+provider+"/callback", finishSignIn)
	}

	models := http.NewServeMux()
	models.HandleFunc("GET /v1/models", s.listModels)
	models.HandleFunc("GET /v1beta/models", s.listModelsBeta)
	models.HandleFunc("POST /v1/chat/completions", s.chatCompletions)
	models.HandleFunc("GET /v1/ws", echoMessages)
	mux.Handle("/v1/", s.requireClientKey(models))
	mux.Handle("/v1beta/", s.requireClientKey(models))

	management := http.NewServeMux()
	management.HandleFunc("GET /v0/management/config.yaml", s.getConfigFile)
	management.HandleFunc("PUT /v0/management/config.yaml", s.putConfigFile)
	management.HandleFunc("GET /v0/management/usage-queue", s.popUsage)
	management.HandleFunc("POST /v0/management/api-call", s.apiCall)
	mux.Handle("/v0/management/", s.requireManagementKey(management))
	return logRequests(mux)
}
