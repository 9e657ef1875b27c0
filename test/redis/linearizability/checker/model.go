package main

import "github.com/anishathalye/porcupine"

// The sequential specification of the lease script: what it promises, and not how it shares.
//
//   - A grant is at most the limit less what the other replicas hold.
//   - A replica holds the larger of its grant and of what it says it uses, until its next call is answered. When it
//     falls silent it holds that until lease and drain are over, then its safe share until it is forgotten.
//   - A replica that has the name of an earlier one takes its place: what that one held is kept for a drain, and its safe
//     share no longer. Its farewell changes nothing before its first call does.
//   - A call that is not newer than the last of its replica is told so, and changes nothing.
//   - A call without an answer was run, or was not.
//
// The store's clock is not in the history. A call runs at some instant between its beginning and its end, so what a
// replica holds is counted for as long as it must be held on any clock: from the beginning of its call to the end of
// the other's.
//
// A store that lost what it knew begins an epoch. While nobody that calls remembers an earlier one, it cannot know of
// those that have not called: they are not counted (docs/scale-out.md: what each fault costs). The first that remembers
// begins another epoch, in which what was granted in between is not counted either.
type held struct {
	Name       string
	Sequence   int64
	Seats      int64
	SafeShare  int64
	Limit      int64
	LeaseEnds  int64
	DrainEnds  int64
	ForgetEnds int64
	// Another replica has its name now: its calls have no effect.
	HasFollower bool
	// The epoch of its last call.
	Epoch int64
}

// No slice is changed after it was made.
type state struct {
	// One record for each replica, by its number.
	replicas []held
	epoch    int64
	// One that called in this epoch knew of an earlier one.
	isRemembered bool
}

// Between a monotonic clock and the store's, µs.
const clockError = 2_000

func seats(h held, at int64) int64 {
	if at <= h.DrainEnds-clockError {
		return h.Seats
	}
	if at <= h.ForgetEnds-clockError {
		return h.SafeShare
	}
	return 0
}

func least(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func most(numbers ...int64) int64 {
	largest := numbers[0]
	for _, number := range numbers {
		if number > largest {
			largest = number
		}
	}
	return largest
}

// What others leave of the smallest limit that is in force when `call` ends.
func room(before state, call *call) int64 {
	limit, others := call.Limit, int64(0)
	for replica, h := range before.replicas {
		if replica == call.Replica || !before.isRemembered && h.Epoch != before.epoch {
			continue
		}
		others += seats(h, call.ReturnUs)
		if h.Sequence > 0 && h.Limit < limit && call.ReturnUs <= h.LeaseEnds-clockError {
			limit = h.Limit
		}
	}
	return most(0, limit-others)
}

func after(before state, call *call, answer *answer, losesState bool) state {
	next := append([]held(nil), before.replicas...)
	mine := held{Name: call.Name, Sequence: call.Sequence, Epoch: before.epoch, Seats: most(call.Cap, call.InFlight), SafeShare: call.SafeShare, Limit: call.Limit}
	if answer != nil {
		mine.Seats = most(mine.Seats, answer.Grant)
		mine.SafeShare = most(mine.SafeShare, answer.SafeShare)
	}
	mine.LeaseEnds = call.CallUs + call.LeaseUs
	mine.DrainEnds = mine.LeaseEnds + call.DrainUs
	mine.ForgetEnds = mine.DrainEnds + call.ForgetUs
	if losesState {
		mine.ForgetEnds = 0
	}
	if call.IsLeaving {
		mine = held{Name: call.Name, Sequence: call.Sequence, Epoch: before.epoch, Seats: call.InFlight, DrainEnds: call.CallUs + call.DrainUs}
		// One that the store had nothing of leaves nothing: its late call may be taken for that of a new one.
		if call.InFlight == 0 && before.replicas[call.Replica].Sequence == 0 {
			mine = held{Name: call.Name}
		}
	}
	next[call.Replica] = mine
	return state{next, before.epoch, before.isRemembered}
}

// The first call of a replica ends the places of those that had its name, also of several that were not heard between.
func followed(before state, call *call, losesState bool) state {
	if call.IsLeaving || before.replicas[call.Replica].Sequence > 0 {
		return before
	}
	before.replicas = append([]held(nil), before.replicas...)
	for i := range before.replicas[:call.Replica] {
		place := &before.replicas[i]
		if place.Name != call.Name || place.HasFollower {
			continue
		}
		place.HasFollower, place.LeaseEnds, place.ForgetEnds = true, 0, 0
		place.DrainEnds = least(place.DrainEnds, call.CallUs+call.DrainUs)
		if losesState {
			place.DrainEnds = 0
		}
	}
	return before
}

func withoutSeats(replicas []held, epoch int64) []held {
	next := append([]held(nil), replicas...)
	for i, h := range next {
		if h.Epoch == epoch {
			next[i] = held{Name: h.Name, Sequence: h.Sequence, HasFollower: h.HasFollower, Epoch: epoch}
		}
	}
	return next
}

// The store's epoch when it answers. Only a first epoch has nothing before it.
func entered(before state, call *call, answer *answer) state {
	if answer.Epoch > before.epoch {
		if !before.isRemembered {
			before.replicas = withoutSeats(before.replicas, before.epoch)
		}
		before.isRemembered = before.epoch == 0
		before.epoch = answer.Epoch
	}
	if !call.IsLeaving && call.Remembers > 0 && call.Remembers != before.epoch {
		before.isRemembered = true
	}
	return before
}

// What the store may hold after the call; nothing when its answer breaks a promise. A store that loses what it knew
// (`losesState`) may take an old call for a new one, lets a replica keep what it uses before all others have called, and
// can only guess the safe share of one that stays silent, and what an earlier one of a name still runs.
func step(before state, call *call, answer *answer, losesState bool) []interface{} {
	isOld := call.Sequence <= before.replicas[call.Replica].Sequence || before.replicas[call.Replica].HasFollower
	switch {
	case answer == nil && isOld:
		return []interface{}{before}
	case answer == nil:
		return []interface{}{before, after(followed(before, call, losesState), call, nil, losesState)}
	case answer.Grant < 0 && isOld, isOld && losesState:
		return []interface{}{before}
	// A late farewell of one who has nothing there any more, or whose name another has.
	case isOld && call.IsLeaving && answer.Grant == 0 && (before.replicas[call.Replica].HasFollower || seats(before.replicas[call.Replica], call.ReturnUs) == 0):
		return []interface{}{before}
	case answer.Grant < 0, isOld, answer.SafeShare > answer.Grant:
		return nil
	case losesState && answer.Epoch > 0 && answer.Epoch < before.epoch:
		return nil
	}
	before = followed(entered(before, call, answer), call, losesState)
	allowed := room(before, call)
	if losesState {
		allowed = most(allowed, call.Cap)
	}
	if answer.Grant > allowed {
		return nil
	}
	return []interface{}{after(before, call, answer, losesState)}
}

func model(replicas int, losesState bool) porcupine.Model {
	specification := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{replicas: make([]held, replicas)}} },
		Step: func(before, input, output interface{}) []interface{} {
			return step(before.(state), input.(*call), output.(*answer), losesState)
		},
		Equal: func(a, b interface{}) bool {
			x, y := a.(state), b.(state)
			for i := range x.replicas {
				if x.replicas[i] != y.replicas[i] {
					return false
				}
			}
			return x.epoch == y.epoch && x.isRemembered == y.isRemembered
		},
	}
	return specification.ToModel()
}
