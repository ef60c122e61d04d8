package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// apiCall makes one request in the name of the management user, through
// proxy-url.
func (s *server) apiCall(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Method string            `json:"method"`
		URL    string            `json:"url"`
		Header map[string]string `json:"header"`
		Data   string            `json:"data"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&call); err != nil {
		httpjson.Error(w, http.StatusBadRequest, "invalid body")
		return
	}
	if call.Method == "" {
		httpjson.Error(w, http.StatusBadRequest, "missing method")
		return
	}
	if target, err := url.Parse(call.URL); err != nil || target.Scheme == "" || target.Host == "" {
		httpjson.Error(w, http.StatusBadRequest, "invalid url")
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), strings.ToUpper(call.Method), call.URL, strings.NewReader(call.Data))
	if err != nil {
		httpjson.Error(w, http.StatusBadRequest, "failed to build request")
		return
	}
	for name, value := range call.Header {
		request.Header.Set(name, value)
	}

	response, err := outboundClient(s.live.get().ProxyURL).Do(request)
	if err != nil {
		slog.Debug("api-call failed", "error", err)
		httpjson.Error(w, http.StatusBadGateway, "request failed")
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		httpjson.Error(w, http.StatusBadGateway, "failed to read response")
		return
	}
	httpjson.Write(w, http.StatusOK, map[string]any{
		"status_code": response.StatusCode,
		"header":      response.Header,
		"body":        string(body),
	})
}
