// Command networkpolicy is the test cluster's test-only enforcer of NetworkPolicies: one process per node, inside the
// node's network namespace, writes an iptables chain for each of the node's pods that a policy isolates.
//
// It stands for the network plug-in of a real cluster (Calico, Cilium and others), of which none can be had here.
//
// It proves what a policy means, by the specification of Kubernetes: who reaches whom on which port. It proves nothing
// of a vendor's implementation: how soon a policy holds for a new pod, what becomes of open connections (here they
// stay), host network pods (here neither isolated nor anybody's peer), IPv6 (ignored), or traffic to the node itself.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"trainchart.example/testcluster/networkpolicy/rules"
)

// bridgeFilter makes packets between two pods of one node, which only cross its bridge, pass iptables too. It is a
// setting of the network namespace.
const bridgeFilter = "/proc/sys/net/bridge/bridge-nf-call-iptables"

const retryAfter = time.Second

// restPerWork is how long changes are gathered after rules were written, in times of what that took: a thousand pods
// that start together must not keep a core busy with rules. Never longer than longestRest, since new pods cannot be
// reached until then: on a busy machine, writing takes seconds.
const (
	restPerWork = 10
	longestRest = 3 * time.Second
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig file of a user who may read policies, pods and namespaces")
	node := flag.String("node-name", "", "name of the node whose network namespace this is")
	flag.Parse()
	if *kubeconfig == "" || *node == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node); err != nil {
		log.Fatal(err)
	}
}

// run enforces until the context ends. The rules stay: they go with the namespace.
func run(ctx context.Context, kubeconfig, node string) error {
	if err := os.WriteFile(bridgeFilter, []byte("1\n"), 0); err != nil {
		return fmt.Errorf("the kernel does not filter bridged packets (br_netfilter): %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	policies, pods := factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Pods()
	namespaces := factory.Core().V1().Namespaces()

	// Holds at most one signal: changes that come while rules are written are served together.
	changed := make(chan struct{}, 1)
	signalChange := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signalChange() },
		UpdateFunc: func(any, any) { signalChange() },
		DeleteFunc: func(any) { signalChange() },
	}
	for _, informer := range []cache.SharedIndexInformer{policies.Informer(), pods.Informer(), namespaces.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	var applied []rules.Chain
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		begun := time.Now()
		var errs [3]error
		state := rules.State{Node: node}
		state.Policies, errs[0] = policies.Lister().List(labels.Everything())
		state.Pods, errs[1] = pods.Lister().List(labels.Everything())
		state.Namespaces, errs[2] = namespaces.Lister().List(labels.Everything())
		wanted, err := rules.Plan(state)
		if err = errors.Join(append(errs[:], err)...); err == nil && !reflect.DeepEqual(wanted, applied) {
			err = apply(ctx, wanted)
		}
		if err != nil {
			log.Print(err)
			time.AfterFunc(retryAfter, signalChange)
			continue
		}
		applied = wanted
		select {
		case <-ctx.Done():
		case <-time.After(min(restPerWork*time.Since(begun), longestRest)):
		}
	}
}

// apply brings the kernel's chains to the wanted ones in one step.
func apply(ctx context.Context, wanted []rules.Chain) error {
	saved, err := iptables(ctx, "", "iptables-save", "-t", rules.Table)
	if err != nil {
		return err
	}
	text := rules.Restore(wanted, saved)
	if _, err := iptables(ctx, text, "iptables-restore", "--noflush", "--wait", "5"); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	log.Printf("%d chains", len(wanted))
	return nil
}

func iptables(ctx context.Context, input, program string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdin = bytes.NewBufferString(input)
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(failure.Bytes()))
	}
	return string(output), nil
}
