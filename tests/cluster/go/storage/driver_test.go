package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func TestModes(t *testing.T) {
	cases := map[csi.VolumeCapability_AccessMode_Mode]struct{ isExclusive, isReadOnly bool }{
		csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:       {isExclusive: true},
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:  {},
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:   {isReadOnly: true},
		csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:  {isReadOnly: true},
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER: {},
	}
	for mode, want := range cases {
		if isExclusive(mode) != want.isExclusive || isReadOnly(mode) != want.isReadOnly {
			t.Errorf("%s: exclusive %v, read-only %v", mode, isExclusive(mode), isReadOnly(mode))
		}
	}
}

func TestEachNodeHasItsOwnMountOfARoot(t *testing.T) {
	with := nodeServer{dataRoot: "/volumes", mounts: "/node1/mounts"}
	without := nodeServer{dataRoot: "/volumes"}
	cases := []struct {
		node         nodeServer
		handle, want string
	}{
		{with, "cephfs/pvc-3f9a", "/node1/mounts/cephfs/pvc-3f9a"},
		{with, "pvc-3f9a", "/volumes/pvc-3f9a"},
		{without, "cephfs/pvc-3f9a", "/volumes/cephfs/pvc-3f9a"},
	}
	for _, one := range cases {
		if folder, err := one.node.folder(one.handle); err != nil || folder != one.want {
			t.Errorf("%s is at %s, %v; expected %s", one.handle, folder, err, one.want)
		}
	}
	if folder, err := with.folder("../etc"); err == nil {
		t.Errorf("a handle leads to %s", folder)
	}
}

// TestARefusedDriverOffersItselfAgain refuses it as a kubelet does that has no API server to write its Node to.
func TestARefusedDriverOffersItselfAgain(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "reg.sock")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- register(ctx, "/csi.sock", socket) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the driver ended: %v", err)
		}
	}()
	var before os.FileInfo
	for range 2 {
		before = waitForAnother(t, socket, before)
		connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		kubelet := registration.NewRegistrationClient(connection)
		info, err := kubelet.GetInfo(t.Context(), &registration.InfoRequest{})
		if err != nil || info.GetEndpoint() != "/csi.sock" {
			t.Fatalf("the driver offers %v, %v", info, err)
		}
		refusal := &registration.RegistrationStatus{Error: "no API server"}
		if _, err := kubelet.NotifyRegistrationStatus(t.Context(), refusal); err != nil {
			t.Fatal(err)
		}
	}
}

// waitForAnother waits for a socket at a path that is not the one before.
func waitForAnother(t *testing.T, path string, before os.FileInfo) os.FileInfo {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		now, err := os.Stat(path)
		if err == nil && (before == nil || !os.SameFile(before, now) || !now.ModTime().Equal(before.ModTime())) {
			return now
		}
	}
	t.Fatalf("no new socket at %s", path)
	return nil
}
