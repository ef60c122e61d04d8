package main

import (
	"net/http"
	"slices"

	"github.com/example-org/subrelay-operator/test/images/internal/httpjson"
)

// listModels answers an empty list until a provider is configured.
func (s *server) listModels(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, p := range s.live.get().OpenAICompatibility {
		for _, m := range p.Models {
			list = append(list, model{ID: m.clientName(), Object: "model", OwnedBy: p.Name})
		}
	}
	httpjson.Write(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *server) listModelsBeta(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		Name string `json:"name"`
	}
	list := []model{}
	for _, p := range s.live.get().OpenAICompatibility {
		for _, m := range p.Models {
			list = append(list, model{Name: "models/" + m.clientName()})
		}
	}
	httpjson.Write(w, http.StatusOK, map[string]any{"models": list})
}

// findModel returns the first provider that offers the model and what the
// provider itself calls it. Providers without base-url are not used.
func (c *config) findModel(clientName string) (provider, string, bool) {
	for _, p := range c.OpenAICompatibility {
		i := slices.IndexFunc(p.Models, func(m providerModel) bool { return m.clientName() == clientName })
		if i >= 0 && p.BaseURL != "" {
			return p, p.Models[i].Name, true
		}
	}
	return provider{}, "", false
}
