/*
 * A-stacks leased to threads, for spin: who takes and puts one without a locked instruction, and who ends a lease that
 * is idle. docs/MODELS.md has the table; L1 .. L8 are its names, G3 is growth.pml's.
 *
 * OWNERS threads of a client call: the first CALLS times, the others OTHERS times, with RECORDS A-stacks. NEST: a call
 * may have another one within. STARTED: a call may take a spare. QUARANTINE: an A-stack may leave the list, and come
 * back. TRIM: the watcher takes all that are idle and puts them back. REFUSE: from some moment on the kernel refuses
 * heavy fences. CLOSE: the binding is revoked at any moment.
 *
 * What an owner stores without a locked instruction waits in a buffer of its own, as long as the processor likes. It
 * leaves in any order, but stores to one place leave in theirs, and a release store after everything that came before
 * it. That is weaker than x86 and no stronger, for stores, than aarch64. A heavy fence waits until each buffer has been
 * empty at some moment of it (membarrier(2)). Loads are not delayed: here each decides alone what its thread does next.
 *
 * What is checked: an A-stack is in one pair of hands; none is lost; a lease's word without the bit `wanted` names an
 * A-stack; nobody sleeps for ever while there is an A-stack for him.
 */

#ifndef OWNERS
#define OWNERS 2
#endif
#ifndef RECORDS
#define RECORDS 1
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef OTHERS
#define OTHERS CALLS
#endif
#ifndef NEST
#define NEST 0
#endif
#ifndef STARTED
#define STARTED 0
#endif
#ifndef QUARANTINE
#define QUARANTINE 0
#endif
#ifndef TRIM
#define TRIM 0
#endif
#ifndef REFUSE
#define REFUSE 0
#endif
#ifndef CLOSE
#define CLOSE 0
#endif

#define THREADS (OWNERS + 1) /* the last one is the watcher's, which leases nothing */
#define WATCHER OWNERS
#define CALLS_OF(thread) (thread == 0 -> CALLS : OTHERS)

/* The word `record` of a lease: an A-stack's number, from 1, and the bit. */
#define WANTED 1
#define NONE WANTED
#define NUMBER(word) ((word) >> 1)

byte record[THREADS] = NONE;
bit in_call[THREADS], moving[THREADS], wanted[THREADS];
byte spares[THREADS], below[RECORDS + 1];

bit in_lifo[RECORDS + 1];
bit held[RECORDS + 1]; /* the judge's: in somebody's hands */
bit lock, leasing_ended, refused, revoked;
byte waiters, returns;
bit asleep[THREADS];

/* ---- Stores that wait ---- */

mtype = { IN_CALL, MOVING, SPARES, BELOW };
chan buffer[THREADS] = [5] of { mtype, byte /* of which A-stack */, byte /* value */, bit /* release */ };
/* What the owner itself reads of places that it has stored to. */
bit own_in_call[THREADS];
byte spares_waiting[THREADS], own_spares[THREADS], own_below[RECORDS + 1];

#define RELAXED 0
#ifdef BROKEN_RELEASES_RELAXED
#define RELEASE 0
#else
#define RELEASE 1
#endif

inline store_in_call(value, order) {
  atomic { nfull(buffer[me]) -> buffer[me] ! IN_CALL, 0, value, order; own_in_call[me] = value }
}
inline store_moving(value, order) { buffer[me] ! MOVING, 0, value, order }
inline store_spares(value) {
  atomic {
    nfull(buffer[me]) -> buffer[me] ! SPARES, 0, value, RELAXED;
    own_spares[me] = value;
    spares_waiting[me]++
  }
}
inline store_below(which, value) {
  atomic { nfull(buffer[me]) -> buffer[me] ! BELOW, which, value, RELAXED; own_below[which] = value }
}
#define SPARES_AS_OWN ((spares_waiting[me] != 0) * own_spares[me] + (spares_waiting[me] == 0) * spares[me])

inline arrive() {
  if
  :: place == IN_CALL -> in_call[me] = value
  :: place == MOVING -> moving[me] = value
  :: place == SPARES -> spares[me] = value; spares_waiting[me]--
  :: place == BELOW -> below[which] = value
  fi;
  place = 0; which = 0; value = 0; order = 0
}

proctype memory(byte me) {
  mtype place;
  byte which, value;
  bit order;
end:
  do
  :: atomic { buffer[me] ? place, which, value, order -> arrive() }
  /* Ahead of others; not of one to the same place. */
  :: atomic { buffer[me] ?? [IN_CALL, which, value, 0] && !(buffer[me] ?? [IN_CALL, which, value, 1]) ->
       place = IN_CALL; buffer[me] ?? IN_CALL, which, value, 0; arrive() }
  :: atomic { buffer[me] ?? [MOVING, which, value, 0] && !(buffer[me] ?? [MOVING, which, value, 1]) ->
       place = MOVING; buffer[me] ?? MOVING, which, value, 0; arrive() }
  :: atomic { buffer[me] ?? [SPARES, which, value, 0] ->
       place = SPARES; buffer[me] ?? SPARES, which, value, 0; arrive() }
  od
}

/* Everything before a release, or an ordinary full fence, has arrived. */
inline all_arrived() { empty(buffer[me]) }

/* Sets `ok`. */
inline heavy_fence() {
#if REFUSE
  ok = !refused;
#else
  ok = 1;
#endif
  if
  :: ok ->
    f = 0;
    do
    :: f < THREADS -> empty(buffer[f]); f++
    :: else -> break
    od;
    f = 0
  :: else
  fi
}

inline acquire() { atomic { !lock -> lock = 1 } }
inline release() { all_arrived(); lock = 0 }

/* ---- The LIFO: any A-stack in it will do ---- */

#if RECORDS > 1
#define LIFO_EMPTY (!in_lifo[1] && !in_lifo[2])
#else
#define LIFO_EMPTY (!in_lifo[1])
#endif
inline push(what) {
  all_arrived();
  in_lifo[what] = 1
}
inline pop() {
  atomic {
    if
    :: in_lifo[1] -> r = 1; in_lifo[1] = 0
#if RECORDS > 1
    :: in_lifo[2] -> r = 2; in_lifo[2] = 0
#endif
    :: else -> r = 0
    fi
  }
}

/* ---- Waiting (G3) ---- */

inline wake_waiters() {
  all_arrived(); /* the count releases */
  atomic {
    returns++;
    for (k : 0 .. THREADS - 1) { asleep[k] = 0 }
    k = 0
  }
}
inline wake_if_any() {
  if
  :: waiters -> wake_waiters()
  :: else
  fi
}

inline look() { /* sets `found` */
  found = in_lifo[1];
#if RECORDS > 1
  found = found || in_lifo[2];
#endif
  t = 0;
  do
  :: t < OWNERS && !found && !leasing_ended ->
    if
    :: NUMBER(record[t]) && !in_call[t] -> found = 1
    :: else
    fi;
    if
    :: !found && !moving[t] -> found = (spares[t] != 0)
    :: else
    fi;
    t++
  :: else -> break
  od;
  t = 0
}

inline wait() {
#ifdef BROKEN_LOOKS_BEFORE_IT_ANNOUNCES
  look();
#endif
  all_arrived();
  waiters++;
#ifdef BROKEN_WAITS_WITHOUT_FENCE
  ok = 1;
#else
  heavy_fence();
#endif
#ifdef BROKEN_READS_THE_COUNT_AFTER_THE_REVOCATION
  seen = returns;
#endif
#ifndef BROKEN_LOOKS_BEFORE_IT_ANNOUNCES
  look();
#endif
  if
  :: !found ->
    atomic {
      if
      :: returns == seen -> asleep[me] = 1
      :: else
      fi
    }
    if
    :: !asleep[me]
    /* The sleep is bounded. It need be where the fence was refused; and where leasing has ended it may last, as long as
     * the others keep what is theirs. */
    :: !ok || leasing_ended && !revoked && LIFO_EMPTY -> asleep[me] = 0
    fi
  :: else
  fi;
  found = 0; seen = 0; ok = 0;
  waiters--
}

/* ---- The owner ---- */

inline take_leased() { /* L1 */
  r = 0;
  if
  :: own_in_call[me]
  :: !own_in_call[me] ->
#ifdef BROKEN_SAYS_SO_AFTER_THE_LOOK
    word = record[me];
    store_in_call(1, RELAXED);
#else
    store_in_call(1, RELAXED);
    word = record[me];
#endif
    if
    :: !(word & WANTED) -> r = NUMBER(word); assert(r)
    :: word & WANTED -> store_in_call(0, RELEASE)
    fi;
    word = 0
  fi
}

inline put_leased() { /* L2 */
  store_in_call(0, RELEASE);
  wake_if_any()
}

inline take_spare() { /* L3 */
  r = 0;
#ifndef BROKEN_SPARES_NOT_GUARDED
  store_moving(1, RELAXED);
#endif
  if
  :: !wanted[me] ->
    r = SPARES_AS_OWN;
    if
    :: r -> store_spares(own_below[r])
    :: else
    fi
  :: wanted[me]
  fi;
  store_moving(0, RELEASE)
}

inline put_shared() {
  push(r); /* and the full fence */
  wake_if_any()
}

inline put_spare() { /* L4 */
  store_moving(1, RELAXED);
  if
  :: wanted[me] ->
    store_moving(0, RELEASE);
    put_shared()
  :: !wanted[me] ->
    store_below(r, SPARES_AS_OWN);
    store_spares(r);
    store_moving(0, RELEASE);
    wake_if_any()
  fi
}

inline put_slow() {
  if
  :: NUMBER(record[me]) == r -> store_in_call(0, RELEASE)
  :: NUMBER(record[me]) != r ->
    if /* L5 */
    :: NUMBER(record[me]) -> push(r)
#ifdef BROKEN_LEASES_WITHOUT_THE_LOCK
    :: !NUMBER(record[me]) -> record[me] = r << 1
#else
    :: !NUMBER(record[me]) ->
      atomic { ok = !lock; lock = 1 }
      if
      :: !ok -> push(r)
      :: ok && leasing_ended -> release(); push(r)
      :: ok && !leasing_ended -> all_arrived(); record[me] = r << 1; release()
      fi;
      ok = 0
#endif
    fi
  fi;
  all_arrived();
  wake_if_any()
}

inline give_up() {
  if
  :: NUMBER(record[me]) == r ->
    record[me] = NONE;
    store_in_call(0, RELEASE)
  :: else
  fi
}

inline surrender_own_lease() { /* L8 */
  if
  :: leasing_ended ->
    do
    :: SPARES_AS_OWN ->
      r = SPARES_AS_OWN;
      store_spares(own_below[r]);
      push(r);
      ok = 1
    :: else -> break
    od;
    r = 0;
    if
    :: !own_in_call[me] && NUMBER(record[me]) -> r = NUMBER(record[me]); record[me] = NONE; push(r); ok = 1; r = 0
    :: else
    fi;
    if
    :: ok -> all_arrived(); wake_if_any()
    :: !ok
    fi;
    ok = 0
  :: else
  fi
}

/* ---- Whoever finds the LIFO empty ---- */

inline stop_leasing() { /* L7 */
  leasing_ended = 1;
  t = 0;
  do
  :: t < OWNERS -> wanted[t] = 1; record[t] = record[t] | WANTED; t++
  :: else -> break
  od
}

inline end_a_lease() { /* L6 */
  r = 0;
  acquire();
  if
#ifdef BROKEN_ENDS_LEASES_AFTER_LEASING
  :: true ->
#else
  :: leasing_ended
  :: !leasing_ended ->
#endif
    t = 0;
    do
    :: t < OWNERS && !r ->
      if
      :: NUMBER(record[t]) || spares[t] ->
#ifdef BROKEN_FENCE_FIRST
        heavy_fence();
#endif
        wanted[t] = 1;
        record[t] = record[t] | WANTED;
#ifdef BROKEN_NO_FENCE
        ok = 1;
#else
#ifndef BROKEN_FENCE_FIRST
        heavy_fence();
#endif
#endif
#ifndef BROKEN_TAKES_WITHOUT_FENCE
        if
        :: !ok -> stop_leasing(); break
        :: ok
        fi;
#endif
        ok = 0;
        if
        :: !moving[t] ->
          r = spares[t];
          if
          :: r -> spares[t] = below[r]
          :: else
          fi
        :: moving[t] -> moved = moved || spares[t]
        fi;
        if
        :: !r && !in_call[t] ->
          atomic { r = NUMBER(record[t]); record[t] = NONE }
        :: else
        fi;
        wanted[t] = 0;
#ifdef BROKEN_NONE_LOSES_ITS_BIT
        record[t] = record[t] & ~WANTED;
#else
        atomic {
          if
          :: record[t] != NONE -> record[t] = record[t] & ~WANTED
          :: else
          fi
        }
#endif
      :: else
      fi;
      t++
    :: else -> break
    od
  fi;
  t = 0; ok = 0;
  release()
}

inline take_any() { /* sets `moved`: an owner was just at its spares */
  moved = 0;
  surrender_own_lease();
  take_leased();
  if
  :: !r ->
#if STARTED
    take_spare();
#endif
    if
    :: !r -> pop()
    :: else
    fi;
    if
    :: !r -> end_a_lease()
    :: else
    fi
  :: else
  fi
}

/* r stays 0: the binding is revoked. */
inline take_slow() {
  do
  :: seen = returns;
    if
    :: revoked -> break
    :: !revoked ->
      take_any();
      if
      :: r -> break
      :: !r && moved -> moved = 0 /* it sleeps for a moment and looks again, whatever becomes of the count */
      :: !r && !moved -> wait()
      fi
    fi
  od;
  seen = 0
}

inline hold() {
  atomic { assert(!held[r]); held[r] = 1 }
}
inline let_go() { held[r] = 0 }

/* ---- Processes ---- */

proctype owner(byte me) {
  byte n, r, outer, t, f, k, seen;
  byte word, calls = CALLS_OF(me);
  bit ok, found, fast, outer_fast, moved;
  do
  :: n == calls || revoked -> break
  :: n < calls && !revoked ->
    n++;
    take_leased();
    fast = (r != 0);
    if
    :: !fast -> take_slow()
    :: else
    fi;
    if
    :: r ->
      hold();
#if NEST
      if
      :: outer = r; outer_fast = fast; r = 0;
        take_leased(); /* none, if the outer one is leased to us */
        fast = (r != 0);
        if
        :: !fast -> take_any()
        :: else
        fi;
        if
        :: r ->
          hold();
          let_go();
          if
          :: fast -> put_leased()
          :: else -> put_slow()
          fi
        :: else /* none there: with an A-stack each, two that wait for a second one would wait for ever */
        fi;
        r = outer; fast = outer_fast; outer = 0
      :: skip
      fi;
#endif
      if
      :: let_go();
        if
        :: fast -> put_leased()
        :: !fast -> put_slow()
        fi
#if QUARANTINE
      :: give_up();
        let_go();
        put_shared()
#endif
      fi
    :: else
    fi;
    r = 0; fast = 0; moved = 0
#if STARTED
  :: n < calls && !revoked ->
    n++;
    take_spare();
    if
    :: !r -> take_slow()
    :: else
    fi;
    if
    :: r ->
      hold();
      /* One that was taken from the lease is no spare. */
      give_up();
      let_go();
      put_spare()
    :: else
    fi;
    r = 0; moved = 0
#endif
  od
}

proctype watcher() {
  byte r, t, f, k, me = WATCHER;
  byte idle[RECORDS + 1], count;
  bit ok, moved;
  do
  :: pop();
    if
    :: r -> hold(); count++; idle[count] = r; r = 0
    :: else -> break
    fi
  od;
  do
  :: count < RECORDS ->
    end_a_lease();
    if
    :: r -> hold(); count++; idle[count] = r; r = 0
    :: else -> break
    fi
  :: else -> break
  od;
  do
  :: count -> r = idle[count]; idle[count] = 0; count--; let_go(); push(r)
  :: else -> break
  od;
  r = 0;
  wake_if_any()
}

proctype kernel() { refused = 1; refused = 0 }

proctype closer() {
  byte t, k, me = WATCHER;
  acquire();
  stop_leasing();
  release();
  revoked = 1;
  wake_waiters()
}

proctype judge() {
  byte r, t, s, places;
  timeout; /* nothing else can move */
  for (r : 1 .. RECORDS) {
    assert(!held[r]);
    places = in_lifo[r];
    for (t : 0 .. OWNERS - 1) {
      if
      :: NUMBER(record[t]) == r -> places++
      :: else
      fi;
      s = spares[t];
      do
      :: s == r -> places++; s = below[s]
      :: s && s != r -> s = below[s]
      :: !s -> break
      od
    }
    assert(places == 1)
  }
}

init {
  byte i;
  atomic {
    for (i : 1 .. RECORDS) { in_lifo[i] = 1 }
    for (i : 0 .. OWNERS - 1) {
      run memory(i);
      run owner(i)
    }
#if TRIM
    run watcher();
#endif
#if REFUSE
    run kernel();
#endif
#if CLOSE
    run closer();
#endif
    run judge()
  }
}
