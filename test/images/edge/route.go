package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// checkRoutes fails for what findRoute and the proxy cannot follow.
func checkRoutes(configuration *routev3.RouteConfiguration) error {
	for _, host := range configuration.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			if err := errors.Join(checkMatch(route.GetMatch()), checkAction(route)); err != nil {
				return fmt.Errorf("route %s: %w", route.GetName(), err)
			}
		}
	}
	return nil
}

func checkMatch(match *routev3.RouteMatch) error {
	switch match.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix, *routev3.RouteMatch_Path, *routev3.RouteMatch_PathSeparatedPrefix:
	default:
		return fmt.Errorf("paths are matched by %T, which this stand-in does not know", match.GetPathSpecifier())
	}
	if len(match.GetHeaders())+len(match.GetQueryParameters())+len(match.GetCookies()) > 0 || match.GetRuntimeFraction() != nil {
		return errors.New("requests are matched by more than their path, which this stand-in does not do")
	}
	return nil
}

func checkAction(route *routev3.Route) error {
	switch action := route.GetAction().(type) {
	case *routev3.Route_DirectResponse, *routev3.Route_Redirect:
		return nil
	case *routev3.Route_Route:
		if action.Route.GetCluster() == "" {
			return fmt.Errorf("a cluster is chosen by %T, which this stand-in does not know", action.Route.GetClusterSpecifier())
		}
		if action.Route.GetPrefixRewrite() != "" || action.Route.GetRegexRewrite() != nil || action.Route.GetHostRewriteSpecifier() != nil {
			return errors.New("requests are rewritten, which this stand-in does not do")
		}
		return nil
	default:
		return fmt.Errorf("action %T is unknown to this stand-in", action)
	}
}

// findRoute returns the first route that matches in the virtual host that fits best, or nil.
func findRoute(configuration *routev3.RouteConfiguration, host, path string) *routev3.Route {
	for _, route := range findHost(configuration, host).GetRoutes() {
		if matches(route.GetMatch(), path) {
			return route
		}
	}
	return nil
}

// findHost prefers the name itself, then the longest *.domain, then *.
func findHost(configuration *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	if configuration.GetIgnorePortInHostMatching() {
		host = withoutPort(host)
	}
	var best *routev3.VirtualHost
	bestLength := -1
	for _, candidate := range configuration.GetVirtualHosts() {
		for _, domain := range candidate.GetDomains() {
			if strings.EqualFold(domain, host) {
				return candidate
			}
			if strings.HasPrefix(domain, "*") && len(domain) > bestLength && hostMatches(domain, host) {
				best, bestLength = candidate, len(domain)
			}
		}
	}
	return best
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

func matches(match *routev3.RouteMatch, path string) bool {
	fold := func(s string) string { return s }
	if match.GetCaseSensitive() != nil && !match.GetCaseSensitive().GetValue() {
		fold = strings.ToLower
	}
	path = fold(path)
	switch by := match.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return strings.HasPrefix(path, fold(by.Prefix))
	case *routev3.RouteMatch_Path:
		return path == fold(by.Path)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		rest, found := strings.CutPrefix(path, fold(by.PathSeparatedPrefix))
		return found && (rest == "" || rest[0] == '/')
	default:
		return false
	}
}

// normalise returns the path that is matched and passed on: without empty, . and .. segments.
func normalise(of string) string {
	clean := path.Clean("/" + of)
	if strings.HasSuffix(of, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// hasEscapedSlash reports whether a path as it was sent hides a slash or backslash from whoever splits it.
func hasEscapedSlash(u *url.URL) bool {
	escaped := strings.ToLower(u.EscapedPath())
	return strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c")
}

// redirectCodes are the status codes of Envoy's redirects.
var redirectCodes = map[routev3.RedirectAction_RedirectResponseCode]int{
	routev3.RedirectAction_MOVED_PERMANENTLY:  http.StatusMovedPermanently,
	routev3.RedirectAction_FOUND:              http.StatusFound,
	routev3.RedirectAction_SEE_OTHER:          http.StatusSeeOther,
	routev3.RedirectAction_TEMPORARY_REDIRECT: http.StatusTemporaryRedirect,
	routev3.RedirectAction_PERMANENT_REDIRECT: http.StatusPermanentRedirect,
}

// redirectTarget returns where a request is sent to.
func redirectTarget(action *routev3.RedirectAction, r *http.Request) string {
	target := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.TLS != nil {
		target.Scheme = "https"
	}
	scheme := action.GetSchemeRedirect()
	if action.GetHttpsRedirect() {
		scheme = "https"
	}
	if scheme != "" && scheme != target.Scheme {
		// The port of the other scheme would be wrong.
		target.Scheme, target.Host = scheme, withoutPort(target.Host)
	}
	if action.GetHostRedirect() != "" {
		target.Host = action.GetHostRedirect()
	}
	if port := action.GetPortRedirect(); port != 0 {
		target.Host = withoutPort(target.Host)
		if isDefault := target.Scheme == "https" && port == 443 || target.Scheme == "http" && port == 80; !isDefault {
			target.Host = net.JoinHostPort(target.Host, strconv.Itoa(int(port)))
		}
	}
	if action.GetPathRedirect() != "" {
		target.Path = action.GetPathRedirect()
	}
	if action.GetStripQuery() {
		target.RawQuery = ""
	}
	return target.String()
}
