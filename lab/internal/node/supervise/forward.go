package supervise

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"sync"
)

// forward passes the connections that a listener accepts on to the address target, until ctx ends.
// The listener may belong to another network namespace than the one that dials.
func forward(ctx context.Context, listener net.Listener, target string) {
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
			inside, err := dialer.DialContext(ctx, "tcp", target)
			if err != nil {
				// The API server is starting or restarting; the client sees a closed connection and tries again.
				_ = outside.Close()
				return
			}
			join(outside.(*net.TCPConn), inside.(*net.TCPConn))
		}()
	}
}

// join copies both ways and ends each direction on its own, as the two ends do.
func join(a, b *net.TCPConn) {
	var directions sync.WaitGroup
	copyHalf := func(to, from *net.TCPConn) {
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
