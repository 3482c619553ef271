// Command storage is test-only shared storage for the test cluster: a CSI driver and a provisioner whose volumes are
// folders below one data root, which every node of the cluster can see because all nodes are on one machine.
//
// It stands for a storage system that the platform team runs (CephFS, GlusterFS, NFS): claims bind, pods on several
// nodes share a volume, fsGroup and read-only mounts are applied by the real kubelet, and reclaim policies hold. With a
// folder of the data root mounted from such a system it carries that system's behaviour under failures.
//
// It does not prove anything of a vendor's own CSI driver: capacity is not enforced, there are no snapshots, clones,
// expansion, topology or volume statistics, nothing is attached, and the latency is that of a local folder.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// driverName is the name under which kubelets, CSIDriver and StorageClasses know the driver and the provisioner.
const driverName = "storage.trainchart.test"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{Use: "storage", Short: "Test-only CSI driver and provisioner", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newDriverCommand(), newProvisionCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "storage:", err)
		os.Exit(1)
	}
}

func newDriverCommand() *cobra.Command {
	var node nodeServer
	var endpoint, kubeletRoot string
	command := &cobra.Command{
		Use:   "driver",
		Short: "Serve one node's kubelet: mount volumes into its pods",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if endpoint == "" {
				endpoint = filepath.Join(kubeletRoot, "plugins", driverName, "csi.sock")
			}
			registry := filepath.Join(kubeletRoot, "plugins_registry", driverName+"-reg.sock")
			return serve(command.Context(), &node, endpoint, registry)
		},
	}
	flags := command.Flags()
	flags.StringVar(&node.id, "node-id", "", "name of the node")
	flags.StringVar(&node.dataRoot, "data-root", "", "folder that holds all volumes")
	flags.StringVar(&node.mounts, "mounts", "", "folder with the node's own mount of each class's root; the data root if empty")
	flags.StringVar(&kubeletRoot, "kubelet-root", "", "the kubelet's --root-dir")
	flags.StringVar(&endpoint, "endpoint", "", "path of the CSI socket; below the kubelet's root if empty")
	require(command, "node-id", "data-root", "kubelet-root")
	return command
}

func newProvisionCommand() *cobra.Command {
	var kubeconfig, dataRoot string
	command := &cobra.Command{
		Use:   "provision",
		Short: "Serve the cluster: make a volume for each claim, and delete those that were released",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return provision(command.Context(), kubeconfig, dataRoot)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of a user who may do everything to volumes")
	command.Flags().StringVar(&dataRoot, "data-root", "", "folder that holds all volumes")
	require(command, "kubeconfig", "data-root")
	return command
}

func require(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
