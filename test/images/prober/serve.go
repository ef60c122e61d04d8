package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// longestCall bounds what a call may make the prober hold in memory, in bytes.
const longestCall = 64 << 20

func runServe(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	var relays []string
	flags.Func("relay", "pass UDP and TCP on, LISTEN=UPSTREAM", func(pair string) error {
		relays = append(relays, pair)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	failed := make(chan error)
	for _, pair := range relays {
		if err := startRelay(ctx, pair, failed); err != nil {
			return err
		}
	}
	handler := newProvider(slog.New(slog.NewJSONHandler(out, nil)))
	for _, address := range flags.Args() {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// call is a chat completion as the tests ask for it.
type call struct {
	Messages []struct {
		Content string `json:"content"`
	} `json:"messages"`
	Stream bool `json:"stream"`
	// Events is how many parts a streamed answer has, PauseMS the milliseconds before each of them.
	Events  int   `json:"events"`
	PauseMS int64 `json:"pause_ms"`
}

// newProvider plays a provider of models, below any path. Whatever else it is asked for it answers with a word.
func newProvider(log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.Context().Value(http.LocalAddrContextKey)
		log.Info("asked", "source", r.RemoteAddr, "at", fmt.Sprint(at), "method", r.Method, "path", r.URL.Path)
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions") {
			complete(w, r)
			return
		}
		_, _ = io.WriteString(w, "prober\n")
	})
}

// answerTokens is what every answer reports to have cost.
const answerTokens = 7

// complete answers with the number of bytes that the messages have, or streams as many events as it is asked for.
func complete(w http.ResponseWriter, r *http.Request) {
	var asked call
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestCall)).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if asked.Stream {
		stream(w, r, asked)
		return
	}
	length := 0
	for _, message := range asked.Messages {
		length += len(message.Content)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"hello"}}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, length, answerTokens, length+answerTokens)
}

// stream sends server-sent events, the last of which says that it is the last.
func stream(w http.ResponseWriter, r *http.Request, asked call) {
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	for i := range asked.Events {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Duration(asked.PauseMS) * time.Millisecond):
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n", i)
		if flusher.Flush() != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// startRelay listens as a cache for names on a node does, and passes everything on to the resolver behind it.
func startRelay(ctx context.Context, pair string, failed chan<- error) error {
	address, upstream, found := strings.Cut(pair, "=")
	if !found {
		return fmt.Errorf("relay %q is not LISTEN=UPSTREAM", pair)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go func() { failed <- relayConnections(ctx, listener, upstream) }()
	go func() { failed <- relayPackets(ctx, packets, upstream) }()
	return nil
}

func relayConnections(ctx context.Context, listener net.Listener, upstream string) error {
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := dial(ctx, "tcp", upstream)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			_, _ = io.Copy(client, server)
		}()
	}
}

// relayPackets expects one answer to each packet, as from a resolver.
func relayPackets(ctx context.Context, packets net.PacketConn, upstream string) error {
	const longest = 64 << 10
	for {
		question := make([]byte, longest)
		n, client, err := packets.ReadFrom(question)
		if err != nil {
			return err
		}
		go func() {
			server, err := dial(ctx, "udp", upstream)
			if err != nil {
				return
			}
			defer func() { _ = server.Close() }()
			if server.SetDeadline(time.Now().Add(tryTimeout)) != nil {
				return
			}
			answer := make([]byte, longest)
			if _, err := server.Write(question[:n]); err != nil {
				return
			}
			if n, err := server.Read(answer); err == nil {
				_, _ = packets.WriteTo(answer[:n], client)
			}
		}()
	}
}
