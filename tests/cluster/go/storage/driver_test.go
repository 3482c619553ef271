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
