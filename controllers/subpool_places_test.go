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
			leave, err := p.take(t.Context(), true)
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

func TestQuickPassesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		for range workers {
			leave, err := p.take(t.Context(), false)
			require.NoError(t, err)
			t.Cleanup(leave)
		}
		leave, err := p.take(t.Context(), true)
		require.NoError(t, err, "new pools keep no repair waiting")
		leave()
		soon, cancel := context.WithTimeout(t.Context(), slowPass/2)
		defer cancel()
		_, err = p.take(soon, false)
		require.ErrorIs(t, err, context.DeadlineExceeded)
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
