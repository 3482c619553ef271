package main

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
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
