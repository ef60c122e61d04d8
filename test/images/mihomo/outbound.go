package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Names of the built-in outbounds. COMPATIBLE is what a group without any
// member becomes: it dials directly.
const (
	rejectName     = "REJECT"
	directName     = "DIRECT"
	compatibleName = "COMPATIBLE"
)

var errRejected = errors.New("rejected")

// outbound is a way out for connections.
type outbound interface {
	// dial connects to the target. It returns the name of the way that was
	// taken, for a group with the member in brackets, in case of an error too.
	dial(ctx context.Context, t target) (net.Conn, string, error)
}

type reject struct{}

func (reject) dial(context.Context, target) (net.Conn, string, error) {
	return nil, rejectName, errRejected
}

type direct struct {
	name string
	up   uplink
}

func (d direct) dial(ctx context.Context, t target) (net.Conn, string, error) {
	conn, err := d.up.dial(ctx, t.host, t.port)
	return conn, d.name, err
}

// dead is a node of a type that the stand-in cannot speak.
type dead struct {
	name     string
	nodeType string
}

func (d dead) dial(context.Context, target) (net.Conn, string, error) {
	return nil, d.name, fmt.Errorf("nodes of type %q are always dead in this stand-in", d.nodeType)
}

// httpNode is an upstream HTTP proxy.
type httpNode struct {
	nodeConfig
	up uplink
}

func (n httpNode) dial(ctx context.Context, t target) (net.Conn, string, error) {
	conn, err := n.up.dial(ctx, n.Server, strconv.Itoa(n.Port))
	if err != nil {
		return nil, n.Name, err
	}
	tunnel, err := n.connect(conn, t)
	if err != nil {
		_ = conn.Close()
		return nil, n.Name, err
	}
	return tunnel, n.Name, nil
}

// connect asks the upstream for a tunnel. The upstream may send the first bytes
// of the target together with its answer, so the reader stays in use.
func (n httpNode) connect(conn net.Conn, t target) (net.Conn, error) {
	request := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: t.hostPort()},
		Host:   t.hostPort(),
		Header: http.Header{},
	}
	if n.Username != "" {
		credentials := base64.StdEncoding.EncodeToString([]byte(n.Username + ":" + n.Password))
		request.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, err
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // empty after a 200, the tunnel follows
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the upstream proxy answered %s", response.Status)
	}
	return tunnelConn{Conn: conn, reader: reader}, conn.SetDeadline(time.Time{})
}

type tunnelConn struct {
	net.Conn
	reader *bufio.Reader
}

func (t tunnelConn) Read(p []byte) (int, error) { return t.reader.Read(p) }

func newNode(cfg nodeConfig, up uplink) outbound {
	switch cfg.Type {
	case "http":
		return httpNode{nodeConfig: cfg, up: up}
	case "direct":
		return direct{name: cfg.Name, up: up}
	default:
		return dead{name: cfg.Name, nodeType: cfg.Type}
	}
}
