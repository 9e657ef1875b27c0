// Reads histories of leases, and says of each whether it is linearizable against the specification in model.go.
//
//	go run . history.json…
//
// One line of JSON for each history: {"result": "Ok" | "Illegal" | "Unknown", "calls": 812, "stuckAt": {…}}.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type call struct {
	Replica int `json:"replica"`
	// Those that had its name before have lower numbers.
	Name      string `json:"name"`
	Sequence  int64  `json:"sequence"`
	Cap       int64  `json:"cap"`
	InFlight  int64  `json:"inFlight"`
	SafeShare int64  `json:"safeShare"`
	Limit     int64  `json:"limit"`
	IsLeaving bool   `json:"isLeaving"`
	LeaseUs   int64  `json:"leaseUs"`
	DrainUs   int64  `json:"drainUs"`
	ForgetUs  int64  `json:"forgetUs"`
	// The epoch that its replica knows of; 0: none.
	Remembers int64 `json:"remembers"`
	CallUs    int64 `json:"callUs"`
	// When the answer came, or the connection ended. 0: neither happened.
	ReturnUs int64 `json:"returnUs"`
	// Missing where the connection ended first.
	Answer *answer `json:"answer"`
}

// A grant of -1: the store has seen this call, or a later one.
type answer struct {
	Grant     int64 `json:"grant"`
	SafeShare int64 `json:"safeShare"`
	Epoch     int64 `json:"epoch"`
}

type history struct {
	Replicas   int     `json:"replicas"`
	LosesState bool    `json:"losesState"`
	Calls      []*call `json:"calls"`
}

type verdict struct {
	Result porcupine.CheckResult `json:"result"`
	Calls  int                   `json:"calls"`
	// The first call that the longest order found does not reach, what that order leaves for it, and what each replica
	// holds there.
	StuckAt *call   `json:"stuckAt,omitempty"`
	Room    int64   `json:"room,omitempty"`
	Holds   []int64 `json:"holds,omitempty"`
}

const patience = 20 * time.Second

func check(path string) (verdict, error) {
	var h history
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return verdict{}, fmt.Errorf("%s: %w", path, err)
	}
	operations := make([]porcupine.Operation, len(h.Calls))
	for i, each := range h.Calls {
		if each.ReturnUs == 0 {
			each.ReturnUs = math.MaxInt64
		}
		operations[i] = porcupine.Operation{ClientId: each.Replica, Input: each, Output: each.Answer, Call: each.CallUs, Return: each.ReturnUs}
	}
	result, info := porcupine.CheckOperationsVerbose(model(h.Replicas, h.LosesState), operations, patience)
	found := verdict{Result: result, Calls: len(operations)}
	if result != porcupine.Ok {
		found.explain(h, longest(info))
	}
	return found, nil
}

func longest(info porcupine.LinearizationInfo) []porcupine.Operation {
	var most []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(most) {
				most = order
			}
		}
	}
	return most
}

func (v *verdict) explain(h history, order []porcupine.Operation) {
	reached := map[*call]bool{}
	var last interface{} = state{replicas: make([]held, h.Replicas)}
	for _, operation := range order {
		each := operation.Input.(*call)
		reached[each] = true
		if next := step(last.(state), each, each.Answer, h.LosesState); len(next) > 0 {
			last = next[len(next)-1]
		}
	}
	for _, each := range h.Calls {
		if !reached[each] && (v.StuckAt == nil || each.ReturnUs < v.StuckAt.ReturnUs) {
			v.StuckAt = each
		}
	}
	if v.StuckAt == nil {
		return
	}
	v.Room = room(last.(state), v.StuckAt)
	for _, each := range last.(state).replicas {
		v.Holds = append(v.Holds, seats(each, v.StuckAt.ReturnUs))
	}
}

func main() {
	for _, path := range os.Args[1:] {
		found, err := check(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		line, _ := json.Marshal(found)
		fmt.Println(string(line))
	}
}
