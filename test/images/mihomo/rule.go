package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// rule sends matching targets to the outbound of that name.
type rule struct {
	text     string // type and payload, for the access log
	outbound string
	// resolve says that a host name has to be looked up before matching.
	resolve bool
	matches func(target) bool
}

// parseRule reads TYPE,payload,outbound[,no-resolve], DOMAIN-REGEX,expression,outbound
// or MATCH,outbound.
func parseRule(line string) (rule, error) {
	fields := strings.Split(line, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	kind := fields[0]
	if kind == "DOMAIN-REGEX" {
		return parseDomainRegex(fields[1:])
	}
	if kind == "MATCH" {
		if len(fields) != 2 {
			return rule{}, errors.New("want MATCH,outbound")
		}
		return rule{text: kind, outbound: fields[1], matches: func(target) bool { return true }}, nil
	}
	noResolve := len(fields) == 4 && fields[3] == "no-resolve"
	if len(fields) != 3 && !noResolve {
		return rule{}, errors.New("want TYPE,payload,outbound with an optional no-resolve")
	}
	payload := fields[1]
	parsed := rule{text: kind + "," + payload, outbound: fields[2]}
	switch kind {
	case "DOMAIN":
		name := strings.ToLower(payload)
		parsed.matches = func(t target) bool { return t.host == name }
	case "DOMAIN-SUFFIX":
		parsed.matches = domainSuffix(payload)
	case "IP-CIDR", "IP-CIDR6":
		prefix, err := netip.ParsePrefix(payload)
		if err != nil {
			return rule{}, err
		}
		prefix = prefix.Masked()
		parsed.resolve = !noResolve
		parsed.matches = func(t target) bool { return prefix.Contains(t.address.WithZone("")) }
	case "GEOIP":
		if !strings.EqualFold(payload, "LAN") {
			return rule{}, errors.New("GEOIP other than LAN needs a database, which this stand-in does not have")
		}
		parsed.resolve = !noResolve
		parsed.matches = func(t target) bool { return isLAN(t.address) }
	default:
		return rule{}, fmt.Errorf("this stand-in does not know rules of type %q", kind)
	}
	return parsed, nil
}

// domainSuffix takes a name in capital letters for another one, and so does
// DOMAIN: the real program lowers the letters of rules, not those of targets.
func domainSuffix(suffix string) func(target) bool {
	suffix = strings.ToLower(suffix)
	return func(t target) bool {
		return t.host == suffix || strings.HasSuffix(t.host, "."+suffix)
	}
}

// parseDomainRegex reads what follows DOMAIN-REGEX. The expression may contain
// commas and ignores letter case. Look-around is not known here.
func parseDomainRegex(fields []string) (rule, error) {
	if len(fields) < 2 {
		return rule{}, errors.New("want DOMAIN-REGEX,expression,outbound")
	}
	last := len(fields) - 1
	payload := strings.Join(fields[:last], ",")
	expression, err := regexp.Compile("(?i)" + payload)
	if err != nil {
		return rule{}, err
	}
	return rule{
		text:     "DOMAIN-REGEX," + payload,
		outbound: fields[last],
		matches:  func(t target) bool { return !t.isAddress() && expression.MatchString(t.host) },
	}, nil
}

// isLAN has the ranges of the real program's GEOIP,LAN.
func isLAN(address netip.Addr) bool {
	return address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast() ||
		address.IsMulticast() || address.IsUnspecified()
}

// matchRule returns the first rule that matches. A name that cannot be looked
// up matches no address rule, and the later rules go on. Without any match the
// target goes out directly: the real program fails open here.
func matchRule(ctx context.Context, rules []rule, t target, lookup lookupFunc) rule {
	looked := false
	for _, candidate := range rules {
		if candidate.resolve && !t.address.IsValid() && !looked {
			looked = true
			if address, err := lookup(ctx, t.host); err == nil {
				t.address = address
			}
		}
		if candidate.matches(t) {
			return candidate
		}
	}
	return rule{text: "no rule", outbound: directName}
}
