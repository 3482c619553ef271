package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// pauseAfterRefusal is how long the driver waits before it offers itself again.
const pauseAfterRefusal = time.Second

// nodeServer mounts volumes into the pods of one node.
type nodeServer struct {
	csi.UnimplementedNodeServer
	id       string
	dataRoot string
	mounts   string
}

// folder returns where this node sees a volume's files: below its own mount where the volume's class has a root.
func (n *nodeServer) folder(handle string) (string, error) {
	if n.mounts != "" && filepath.Dir(handle) != "." {
		return volumeFolder(n.mounts, handle)
	}
	return volumeFolder(n.dataRoot, handle)
}

func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.id}, nil
}

// NodeGetCapabilities offers nothing beyond publishing, so that the kubelet neither stages volumes nor asks for numbers.
func (n *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume bind-mounts a volume's folder at the place where the kubelet wants it. It may be called again.
func (n *nodeServer) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := request.GetTargetPath()
	folder, err := n.folder(request.GetVolumeId())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if request.GetVolumeCapability().GetMount() == nil {
		return nil, status.Error(codes.InvalidArgument, "only file system volumes are supported")
	}
	if _, err := os.Stat(folder); err != nil {
		return nil, status.Errorf(codes.NotFound, "volume %s: %v", request.GetVolumeId(), err)
	}
	mode := request.GetVolumeCapability().GetAccessMode().GetMode()
	if isExclusive(mode) {
		if err := (uses{n.dataRoot}).add(request.GetVolumeId(), n.id, target); err != nil {
			return nil, status.Error(codes.FailedPrecondition, err.Error())
		}
	}
	if err := unmount(target); err != nil {
		return nil, status.Errorf(codes.Internal, "unmount %s: %v", target, err)
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := unix.Mount(folder, target, "", unix.MS_BIND, ""); err != nil {
		return nil, status.Errorf(codes.Internal, "bind %s at %s: %v", folder, target, err)
	}
	if request.GetReadonly() || isReadOnly(mode) {
		// A bind mount takes no options when it is made: read-only needs a second step.
		if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return nil, status.Errorf(codes.Internal, "make %s read-only: %v", target, errors.Join(err, unmount(target)))
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume undoes NodePublishVolume. It may be called again.
func (n *nodeServer) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := unmount(target); err != nil {
		return nil, status.Errorf(codes.Internal, "unmount %s: %v", target, err)
	}
	// Not RemoveAll: were anything still mounted there, it would delete the volume's content.
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := (uses{n.dataRoot}).remove(request.GetVolumeId(), n.id, target); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// isExclusive says whether a volume may be on one node only. ReadWriteOncePod comes as the same mode as ReadWriteOnce
// from the kubelet; the scheduler sees to its pods.
func isExclusive(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

func isReadOnly(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY ||
		mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}

// unmount removes every mount at a path, and is content where there is none.
func unmount(path string) error {
	for {
		err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			// Whatever still has a file open there keeps it until it ends, as with a storage system that went away.
			err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return err
		}
	}
}

// identityServer tells the kubelet whom it speaks to.
type identityServer struct {
	csi.UnimplementedIdentityServer
}

func (identityServer) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1"}, nil
}

func (identityServer) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (identityServer) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrar answers the kubelet when it finds the socket in its plugins_registry.
type registrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
	refused  chan<- string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: driverName, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(_ context.Context, result *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !result.GetPluginRegistered() {
		select {
		case r.refused <- result.GetError():
		default: // it is known already
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// serve answers on the CSI socket, and on the registration socket, until the context ends.
func serve(ctx context.Context, node *nodeServer, endpoint, registry string) error {
	driver := grpc.NewServer()
	csi.RegisterIdentityServer(driver, identityServer{})
	csi.RegisterNodeServer(driver, node)
	listener, err := listen(endpoint)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return driver.Serve(listener) })
	group.Go(func() error {
		defer driver.Stop()
		return register(ctx, endpoint, registry)
	})
	return group.Wait()
}

// register offers the driver to the kubelet until the context ends. The kubelet refuses a driver while it has no Node or
// no API server to write it to, and does not try again by itself; but it takes a new socket for a new driver.
func register(ctx context.Context, endpoint, registry string) error {
	for {
		refusal, err := offer(ctx, endpoint, registry)
		if err != nil || ctx.Err() != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "storage: the kubelet refused the driver:", refusal)
		select {
		case <-ctx.Done():
		case <-time.After(pauseAfterRefusal):
		}
	}
}

// offer answers on the registration socket until the kubelet refuses the driver, or the context ends.
func offer(ctx context.Context, endpoint, registry string) (refusal string, err error) {
	refused, failed := make(chan string, 1), make(chan error, 1)
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, &registrar{endpoint: endpoint, refused: refused})
	listener, err := listen(registry)
	if err != nil {
		return "", err
	}
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return "", err
	case refusal = <-refused:
	case <-ctx.Done():
	}
	server.GracefulStop()
	return refusal, nil
}

func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}
