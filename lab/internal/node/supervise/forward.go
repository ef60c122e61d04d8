package supervise

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"sync"
)

// forward passes the connections that a listener accepts on to the address target of a network such as tcp, until ctx
// ends. The listener may belong to another network namespace than the one that dials.
func forward(ctx context.Context, listener net.Listener, network, target string) {
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	var dialer net.Dialer
	for {
		outside, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Printf("accept a connection for the API server: %v", err)
			continue
		}
		go func() {
			inside, err := dialer.DialContext(ctx, network, target)
			if err != nil {
				// The API server is starting or restarting; the client sees a closed connection and tries again.
				_ = outside.Close()
				return
			}
			join(outside.(stream), inside.(stream))
		}()
	}
}

// stream is a connection whose two directions end on their own: TCP or a Unix socket.
type stream interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// join copies both ways and ends each direction on its own, as the two ends do.
func join(a, b stream) {
	var directions sync.WaitGroup
	copyHalf := func(to, from stream) {
		// Whatever ends the copying ends the connection; both ends notice by themselves.
		_, _ = io.Copy(to, from)
		_ = to.CloseWrite()
		_ = from.CloseRead()
	}
	directions.Go(func() { copyHalf(a, b) })
	directions.Go(func() { copyHalf(b, a) })
	directions.Wait()
	_ = a.Close()
	_ = b.Close()
}
