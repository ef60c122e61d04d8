package controllers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// CTL-05: passes that hang, as many as there are workers, keep others waiting for a short while only.
func TestCTL05HangingPassesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		began := time.Now()
		var leaves []func()
		for range workers + 1 {
			leave, err := p.take(t.Context(), requestNamed("made"), true)
			require.NoError(t, err)
			leaves = append(leaves, leave)
		}
		assert.Equal(t, slowPass, time.Since(began), "the last one had to wait")
		for _, leave := range leaves {
			leave() // a place that was given up is not given up again
		}
		assert.Empty(t, p.made)
	})
}

// TestCTL05NewPoolsTakeTurns: new pools that find no place keep neither repairs nor goroutines waiting, and come back one by one.
func TestCTL05NewPoolsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := priorityqueue.New[reconcile.Request]("test")
		defer queue.ShutDown()
		p := newPlaces()
		require.NoError(t, p.source().Start(t.Context(), queue))
		var leaves []func()
		enter := func(name string) bool {
			leave, err := p.take(t.Context(), requestNamed(name), false)
			require.NoError(t, err)
			if leave != nil {
				leaves = append(leaves, leave)
			}
			return leave != nil
		}
		for i := range workers {
			require.True(t, enter(fmt.Sprintf("quick-%d", i)))
		}
		for _, name := range []string{"first", "second", "first", "third"} {
			require.False(t, enter(name))
		}
		leave, err := p.take(t.Context(), requestNamed("repair"), true)
		require.NoError(t, err)
		leave()

		next := func() string {
			synctest.Wait()
			request, _, _ := queue.GetWithPriority()
			queue.Done(request)
			return request.Name
		}
		leaves[0]()
		require.Equal(t, "first", next())
		require.True(t, enter("second"), "an event brought it before its turn")
		require.False(t, enter("first"), "it waits again, behind the others")
		leaves[1]()
		require.Equal(t, "third", next())
		time.Sleep(slowPass) //nolint:forbidigo // the time of this bubble passes at once
		require.Equal(t, "first", next(), "slow passes give their places away")
		require.Empty(t, p.unmade.waiting)
		require.Zero(t, queue.Len())
		for _, leave := range leaves {
			leave()
		}
		require.Zero(t, p.unmade.taken)
	})
}

func TestYields(t *testing.T) {
	assert.False(t, yields(ctrl.Result{}, time.Second))
	assert.False(t, yields(ctrl.Result{RequeueAfter: accessDelay}, time.Second), "a pool that is being made goes on")
	assert.True(t, yields(ctrl.Result{RequeueAfter: troubleDelay}, time.Second), "nothing has happened by then")
	assert.True(t, yields(ctrl.Result{}, 2*slowPass), "it kept others waiting")
}

// CTL-05: a pool that was just made is looked at before the many that a restart or a change of something shared
// concerns, however late it comes.
func TestCTL05NewPoolComesFirst(t *testing.T) {
	const others = 1000
	everyOther := func(context.Context, client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for i := range others {
			requests = append(requests, requestNamed(fmt.Sprintf("old-%d", i)))
		}
		return requests
	}
	shared := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mihomo", ResourceVersion: "1"}}
	changed := shared.DeepCopy()
	changed.ResourceVersion = "2"
	fresh := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}
	for name, crowd := range map[string]func(priorityqueue.PriorityQueue[reconcile.Request]){
		"restart": func(queue priorityqueue.PriorityQueue[reconcile.Request]) {
			for _, request := range everyOther(t.Context(), nil) {
				known := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: request.Name}}
				(&handler.EnqueueRequestForObject{}).Create(t.Context(), event.CreateEvent{Object: known, IsInInitialList: true}, queue)
			}
		},
		"shared object made": func(queue priorityqueue.PriorityQueue[reconcile.Request]) {
			inTurn(everyOther).Create(t.Context(), event.CreateEvent{Object: shared}, queue)
		},
		"shared object changed": func(queue priorityqueue.PriorityQueue[reconcile.Request]) {
			inTurn(everyOther).Update(t.Context(), event.UpdateEvent{ObjectOld: shared, ObjectNew: changed}, queue)
		},
		"shared object deleted": func(queue priorityqueue.PriorityQueue[reconcile.Request]) {
			inTurn(everyOther).Delete(t.Context(), event.DeleteEvent{Object: shared}, queue)
		},
		"shared kind appeared": func(queue priorityqueue.PriorityQueue[reconcile.Request]) {
			inTurn(everyOther).Generic(t.Context(), event.GenericEvent{Object: shared}, queue)
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue := priorityqueue.New[reconcile.Request]("test")
			defer queue.ShutDown()
			crowd(queue)
			(&handler.EnqueueRequestForObject{}).Create(t.Context(), event.CreateEvent{Object: fresh}, queue)
			first, priority, _ := queue.GetWithPriority()
			assert.Equal(t, requestNamed("fresh"), first)
			assert.Zero(t, priority)
			_, priority, _ = queue.GetWithPriority()
			assert.Equal(t, handler.LowPriority, priority)
		})
	}
}

// CTL-05: a repair comes before the pools of a wave, however many there are.
func TestCTL05RepairComesFirst(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	for i := range 1000 {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("new-%d", i)}}
		(&handler.EnqueueRequestForObject{}).Create(t.Context(), event.CreateEvent{Object: made}, queue)
	}
	lost := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "subpool-damaged", Name: "cpa"}}
	byNamespace().Delete(t.Context(), event.DeleteEvent{Object: lost}, queue)
	first, _, _ := queue.GetWithPriority()
	assert.Equal(t, requestNamed("damaged"), first)
}

func requestNamed(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
