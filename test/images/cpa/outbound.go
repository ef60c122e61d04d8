package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// answerTimeout is how long an answer may take to begin; a stream then lasts as long as it lasts.
	answerTimeout    = 60 * time.Second
	catalogueTimeout = 15 * time.Second

	// modelCatalogueURL stands for the real program's catalogue hosts. The name
	// never resolves; what matters is through which proxy it is asked for.
	modelCatalogueURL = "http://models.example.invalid/models.json"
)

type proxyFunc = func(*http.Request) (*url.URL, error)

// proxyFor interprets a proxy-url setting. Empty means the proxy variables of
// the environment. A malformed value fails open, as in the real program: it is
// logged and the traffic goes out directly.
func proxyFor(setting string) proxyFunc {
	setting = strings.TrimSpace(setting)
	if setting == "" {
		return environmentProxy()
	}
	if strings.EqualFold(setting, "direct") || strings.EqualFold(setting, "none") {
		return nil
	}
	proxy, err := parseProxyURL(setting)
	if err != nil {
		slog.Error("proxy-url is not used, traffic goes out directly", "error", err)
		return nil
	}
	return http.ProxyURL(proxy)
}

// parseProxyURL reports errors without the value, which may hold a password.
func parseProxyURL(setting string) (*url.URL, error) {
	proxy, err := url.Parse(setting)
	if err != nil {
		return nil, errors.New("proxy-url: not a URL")
	}
	if proxy.Scheme == "" || proxy.Host == "" {
		return nil, errors.New("proxy-url: scheme or host is missing")
	}
	if !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme) {
		return nil, fmt.Errorf("proxy-url: scheme %q is not supported", proxy.Scheme)
	}
	return proxy, nil
}

func environmentProxy() proxyFunc {
	choose := httpproxy.FromEnvironment().ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

func outboundClient(proxySetting string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 proxyFor(proxySetting),
		DisableKeepAlives:     true,
		ResponseHeaderTimeout: answerTimeout,
	}}
}

// fetchModelCatalogue is the fetch at start that ignores proxy-url and knows
// the proxy variables only. A failure is a warning.
func fetchModelCatalogue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catalogueTimeout)
	defer cancel()
	if err := fetch(ctx, outboundClient(""), modelCatalogueURL); err != nil {
		slog.Warn("model catalogue not fetched", "error", err)
		return
	}
	slog.Info("model catalogue fetched")
}

func fetch(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, response.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody))
	return err
}
