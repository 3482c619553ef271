package main

import (
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newClaim(modes ...core.PersistentVolumeAccessMode) *core.PersistentVolumeClaim {
	return &core.PersistentVolumeClaim{
		ObjectMeta: meta.ObjectMeta{
			Namespace: "ml", Name: "mnist-checkpoints", UID: "3f9a", Annotations: map[string]string{wantedOf: driverName},
		},
		Spec: core.PersistentVolumeClaimSpec{
			AccessModes: modes,
			Resources: core.VolumeResourceRequirements{
				Requests: core.ResourceList{core.ResourceStorage: resource.MustParse("20Gi")},
			},
		},
	}
}

func newClass(parameters map[string]string) *storage.StorageClass {
	return &storage.StorageClass{ObjectMeta: meta.ObjectMeta{Name: "shared"}, Provisioner: driverName, Parameters: parameters}
}

func TestAVolumeAnswersItsClaim(t *testing.T) {
	class := newClass(map[string]string{rootParameter: "glusterfs"})
	class.ReclaimPolicy = new(core.PersistentVolumeReclaimRetain)
	volume, err := planVolume(newClaim(core.ReadWriteMany), class)
	if err != nil {
		t.Fatal(err)
	}
	spec := volume.Spec
	if volume.Name != "pvc-3f9a" || spec.CSI.Driver != driverName || spec.CSI.VolumeHandle != "glusterfs/pvc-3f9a" {
		t.Errorf("the volume is %s with %v", volume.Name, spec.CSI)
	}
	if spec.ClaimRef.Namespace != "ml" || spec.ClaimRef.Name != "mnist-checkpoints" || spec.ClaimRef.UID != "3f9a" {
		t.Errorf("it is kept for %v", spec.ClaimRef)
	}
	if spec.StorageClassName != "shared" || spec.PersistentVolumeReclaimPolicy != core.PersistentVolumeReclaimRetain {
		t.Errorf("it is of %s with %s", spec.StorageClassName, spec.PersistentVolumeReclaimPolicy)
	}
	if size := spec.Capacity[core.ResourceStorage]; size.String() != "20Gi" || spec.AccessModes[0] != core.ReadWriteMany {
		t.Errorf("it has %s and %v", size.String(), spec.AccessModes)
	}
}

func TestWhatIsRefused(t *testing.T) {
	block := newClaim(core.ReadWriteOnce)
	block.Spec.VolumeMode = new(core.PersistentVolumeBlock)
	selecting := newClaim(core.ReadWriteOnce)
	selecting.Spec.Selector = &meta.LabelSelector{}
	one := map[string]string{accessModesParameter: "ReadWriteOnce,ReadWriteOncePod"}
	cases := map[string]struct {
		claim      *core.PersistentVolumeClaim
		parameters map[string]string
		want       string
	}{
		"many nodes on a disk":  {newClaim(core.ReadWriteMany), one, "ReadWriteOnce,ReadWriteOncePod only, not ReadWriteMany"},
		"one of two modes":      {newClaim(core.ReadWriteOnce, core.ReadOnlyMany), one, "not ReadOnlyMany"},
		"a block device":        {block, nil, "volumeMode Block"},
		"a selector":            {selecting, nil, "selector"},
		"an unknown parameter":  {newClaim(), map[string]string{"acessModes": ""}, "acessModes"},
		"a root that leads out": {newClaim(), map[string]string{rootParameter: "../etc"}, "outside the data root"},
		"an absolute root":      {newClaim(), map[string]string{rootParameter: "/etc"}, "outside the data root"},
	}
	for name, one := range cases {
		t.Run(name, func(t *testing.T) {
			volume, err := planVolume(one.claim, newClass(one.parameters))
			if err == nil || !strings.Contains(err.Error(), one.want) {
				t.Errorf("got %v and %v, not an error that says %q", volume, err, one.want)
			}
		})
	}
	if _, err := planVolume(newClaim(core.ReadWriteOncePod), newClass(one)); err != nil {
		t.Errorf("one node on a disk is refused: %v", err)
	}
}

func TestOnlyClaimsThatWaitForUsAreWanted(t *testing.T) {
	bound, others, plain := newClaim(), newClaim(), newClaim()
	bound.Spec.VolumeName = "pvc-3f9a"
	others.Annotations[wantedOf] = "cephfs.csi.ceph.com"
	// With WaitForFirstConsumer a claim has no annotation until its pod is scheduled.
	plain.Annotations = nil
	for _, claim := range []*core.PersistentVolumeClaim{bound, others, plain} {
		if isWanted(claim) {
			t.Errorf("%v is wanted", claim)
		}
	}
	if !isWanted(newClaim()) {
		t.Error("an unbound claim of ours is not wanted")
	}
}

func TestOnlyOurReleasedVolumesAreGarbage(t *testing.T) {
	newVolume := func(change func(*core.PersistentVolume)) *core.PersistentVolume {
		volume, err := planVolume(newClaim(), newClass(nil))
		if err != nil {
			t.Fatal(err)
		}
		volume.Status.Phase = core.VolumeReleased
		change(volume)
		return volume
	}
	if !isGarbage(newVolume(func(*core.PersistentVolume) {})) {
		t.Error("a released volume of ours is kept")
	}
	for name, change := range map[string]func(*core.PersistentVolume){
		"bound": func(volume *core.PersistentVolume) { volume.Status.Phase = core.VolumeBound },
		"retained": func(volume *core.PersistentVolume) {
			volume.Spec.PersistentVolumeReclaimPolicy = core.PersistentVolumeReclaimRetain
		},
		"others'": func(volume *core.PersistentVolume) { volume.Annotations = nil },
		"going":   func(volume *core.PersistentVolume) { volume.DeletionTimestamp = &meta.Time{} },
	} {
		if isGarbage(newVolume(change)) {
			t.Errorf("a volume is deleted although it is %s", name)
		}
	}
}

func TestHandlesStayInsideTheDataRoot(t *testing.T) {
	if folder, err := volumeFolder("/volumes", "glusterfs/pvc-3f9a"); err != nil || folder != "/volumes/glusterfs/pvc-3f9a" {
		t.Errorf("the folder is %s, %v", folder, err)
	}
	for _, handle := range []string{"", ".", "..", "/etc", "a/../../b"} {
		if folder, err := volumeFolder("/volumes", handle); err == nil {
			t.Errorf("%q leads to %s", handle, folder)
		}
	}
}
