package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// longestPrompt bounds the body of a call, in bytes. Prompts with files in them have tens of megabytes.
const longestPrompt = 64 << 20

// chatCompletions passes the request on to the provider that offers the model,
// through proxy-url, and records a usage event. The provider's answer comes
// back as it is, streams chunk by chunk.
func (s *server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestPrompt)).Decode(&body); err != nil {
		chatError(w, http.StatusBadRequest, "the body is not a JSON object: "+err.Error())
		return
	}
	clientName, _ := body["model"].(string)
	cfg := s.live.get()
	upstream, model, ok := cfg.findModel(clientName)
	if !ok {
		chatError(w, http.StatusBadRequest, "unknown provider for model "+clientName)
		return
	}
	body["model"] = model

	started := time.Now()
	event := usageEvent{
		Timestamp: started.UTC(),
		ClientIP:  clientIP(r),
		Provider:  upstream.Name,
		Model:     model,
		Alias:     clientName,
		Endpoint:  "POST " + r.URL.Path,
		AuthType:  "apikey",
		RequestID: rand.Text(),
		Failed:    true,
	}
	response, key, err := callProvider(r.Context(), cfg, upstream, body)
	event.Source = key
	if err != nil {
		event.LatencyMS = time.Since(started).Milliseconds()
		s.recordUsage(event)
		chatError(w, http.StatusInternalServerError, err.Error())
		return
	}
	defer func() { _ = response.Body.Close() }()
	var copied bool
	event.Tokens, copied = relay(w, response)
	event.Failed = !copied || response.StatusCode >= http.StatusBadRequest
	event.LatencyMS = time.Since(started).Milliseconds()
	s.recordUsage(event)
}

// callProvider sends the body with the provider's first key. The key's own
// proxy-url wins over the configuration's.
func callProvider(ctx context.Context, cfg *config, upstream provider, body map[string]any) (*http.Response, string, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, "", err
	}
	address := strings.TrimSuffix(upstream.BaseURL, "/") + "/chat/completions"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(payload))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	proxySetting, key := cfg.ProxyURL, ""
	if len(upstream.APIKeyEntries) > 0 {
		entry := upstream.APIKeyEntries[0]
		key = entry.APIKey
		if entry.ProxyURL != "" {
			proxySetting = entry.ProxyURL
		}
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := outboundClient(proxySetting).Do(request)
	return response, key, err
}

// relay copies the provider's answer and flushes after every read. It returns
// the tokens that a JSON answer reports and whether all of it was copied.
func relay(w http.ResponseWriter, response *http.Response) (usageTokens, bool) {
	maps.Copy(w.Header(), response.Header)
	w.Header().Del("Content-Length")
	w.WriteHeader(response.StatusCode)
	controller := http.NewResponseController(w)
	var copied bytes.Buffer
	buffer := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(buffer)
		copied.Write(buffer[:n])
		if _, writeErr := w.Write(buffer[:n]); writeErr != nil {
			return usageTokens{}, false
		}
		_ = controller.Flush()
		if errors.Is(err, io.EOF) {
			return reportedTokens(copied.Bytes()), true
		}
		if err != nil {
			return usageTokens{}, false
		}
	}
}

func reportedTokens(answer []byte) usageTokens {
	var parsed struct {
		Usage struct {
			Prompt     int64 `json:"prompt_tokens"`
			Completion int64 `json:"completion_tokens"`
			Total      int64 `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return usageTokens{} // a stream or an error page
	}
	return usageTokens{Input: parsed.Usage.Prompt, Output: parsed.Usage.Completion, Total: parsed.Usage.Total}
}

func chatError(w http.ResponseWriter, status int, message string) {
	httpjson.Write(w, status, map[string]any{"error": map[string]string{"message": message}})
}
