package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// key names an object to look at: a claim, or a volume, which has no namespace.
type key struct{ namespace, name string }

// provisioner turns claims into volumes and released volumes into nothing.
type provisioner struct {
	dataRoot string
	client   kubernetes.Interface
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	classes  storagelisters.StorageClassLister
	events   record.EventRecorder
	queue    workqueue.TypedRateLimitingInterface[key]
}

// provision works until the context ends.
func provision(ctx context.Context, kubeconfig, dataRoot string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 300, 600
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typed.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()

	factory := informers.NewSharedInformerFactory(client, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	// Slow steps between tries, yet never so slow that a test waits for one.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](50*time.Millisecond, 5*time.Second)
	p := &provisioner{
		dataRoot: dataRoot, client: client,
		claims: claims.Lister(), volumes: volumes.Lister(), classes: factory.Storage().V1().StorageClasses().Lister(),
		events: broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: driverName}),
		queue:  workqueue.NewTypedRateLimitingQueue[key](limiter),
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		if _, err := informer.AddEventHandler(p.enqueue()); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	for p.next(ctx) {
	}
	return nil
}

func (p *provisioner) enqueue() cache.ResourceEventHandler {
	add := func(object any) {
		if object, isObject := object.(meta.Object); isObject {
			p.queue.Add(key{object.GetNamespace(), object.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}
}

func (p *provisioner) next(ctx context.Context) bool {
	item, isOver := p.queue.Get()
	if isOver {
		return false
	}
	defer p.queue.Done(item)
	work := p.serveClaim
	if item.namespace == "" {
		work = p.serveVolume
	}
	if err := work(ctx, item); err != nil {
		log.Printf("%s/%s: %v", item.namespace, item.name, err)
		p.queue.AddRateLimited(item)
		return true
	}
	p.queue.Forget(item)
	return true
}

func (p *provisioner) serveClaim(ctx context.Context, item key) error {
	claim, err := p.claims.PersistentVolumeClaims(item.namespace).Get(item.name)
	if apierrors.IsNotFound(err) || err == nil && !isWanted(claim) {
		return nil
	}
	if err != nil {
		return err
	}
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	volume, err := planVolume(claim, class)
	if err != nil {
		// Not an error of ours, and no other try helps: the claim or its class has to change.
		p.events.Event(claim, core.EventTypeWarning, "ProvisioningFailed", err.Error())
		return nil
	}
	if err := p.makeFolder(volume); err != nil {
		p.events.Event(claim, core.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		p.events.Eventf(claim, core.EventTypeNormal, "ProvisioningSucceeded", "made volume %s", volume.Name)
	}
	return err
}

// makeFolder makes an empty volume. It belongs to root and is closed to others, as a new file system is: a pod that runs
// as somebody else can write to it only where its fsGroup is applied.
func (p *provisioner) makeFolder(volume *core.PersistentVolume) error {
	folder, err := volumeFolder(p.dataRoot, volume.Spec.CSI.VolumeHandle)
	if err != nil {
		return err
	}
	// Not MkdirAll: where a class's root is missing, its file system is not mounted, and the volume would lie beside it.
	if err := os.Mkdir(folder, 0o755); !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

func (p *provisioner) serveVolume(ctx context.Context, item key) error {
	volume, err := p.volumes.Get(item.name)
	if apierrors.IsNotFound(err) || err == nil && !isGarbage(volume) {
		return nil
	}
	if err != nil {
		return err
	}
	folder, err := volumeFolder(p.dataRoot, volume.Spec.CSI.VolumeHandle)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(folder), uses{p.dataRoot}.forget(volume.Spec.CSI.VolumeHandle)); err != nil {
		p.events.Event(volume, core.EventTypeWarning, "VolumeFailedDelete", err.Error())
		return fmt.Errorf("delete the volume's files: %w", err)
	}
	err = p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, meta.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
