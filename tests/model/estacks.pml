/*
 * Who serves which A-stack, for spin: the bell, the pool of E-stacks, and how E-stacks are taken away (T11 to T14 of
 * docs/CALL_WORD.md) where there are more A-stacks than E-stacks.
 *
 * ASTACKS callers with an A-stack each make CALLS calls each, over one binding with one bell, which holds BELL bytes: a
 * byte more is not sent (EAGAIN) and nobody hears of it. A caller waits for its return without sleeping: T3 and T9
 * between caller and server are call_word.pml's. The domain has ESTACKS E-stacks; LEAVES times one lets go of its
 * A-stack although nobody wants it. With POLLER a poller serves the first A-stack as long as it likes. With SPENT an
 * E-stack cannot be used for a second A-stack (its scheduling was changed): it ends and another is started. With REVOKE
 * the client dies at any step. With STANDS_BY the clerk may associate an E-stack with the first A-stack before there is
 * a call.
 *
 * The pool's lock is a lock here, too; everything under it that only it guards is one step. Which of several E-stacks
 * is the one unused for longest is not said: any may be it. A thread that cannot be started is not modelled.
 * All callers are one user's: `any_waiting` is what the pool keeps for each user.
 *
 * What is checked: every call ends and is executed once; no E-stack is associated twice or with two A-stacks, and at
 * the end each is idle, or parked at the A-stack that knows it; after a revocation all are idle. Nothing of it needs a
 * time limit.
 */

#ifndef ASTACKS
#define ASTACKS 2
#endif
#ifndef ESTACKS
#define ESTACKS 1
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef BELL
#define BELL 1
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef POLLER
#define POLLER 0
#endif
#ifndef SPENT
#define SPENT 0
#endif
#ifndef REVOKE
#define REVOKE 0
#endif
#ifndef STANDS_BY
#define STANDS_BY 0
#endif

#include "word.pml"

/* In the region; index 0 is not used. */
byte word[ASTACKS + 1];
bit attached[ASTACKS + 1];

byte bell;

/* Private to the server. */
byte linkage[ASTACKS + 1];
byte estack[ASTACKS + 1]; /* the associated one */
bit revoked;

/* The pool; under its lock, but for `leave`, `estack` and `any_waiting`, which are also read without it. */
bit locked;
byte astack[ESTACKS + 1]; /* that the E-stack serves, 0 none */
bit idle[ESTACKS + 1];    /* in the list of idle ones (or not started yet) */
bit leave[ESTACKS + 1];
bit parking[ESTACKS + 1]; /* executes nothing, and will look at any_waiting or at `leave` before it sleeps */
bit asleep[ESTACKS + 1];
chan waiting = [ASTACKS] of { byte };
bit any_waiting;
bit supply; /* the clerk has been asked to call supply() */
#if LEAVES > 0
byte leaves = LEAVES;
#endif

bit client_dead;

/* Ghosts. */
bit executing[ASTACKS + 1];
byte executed[ASTACKS + 1];
byte done;

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { locked = 0 }

/* Every E-stack that sleeps on this word: one that is leaving still counts as its A-stack's beside the next. */
inline wake(a) {
  asleep[1] = asleep[1] && astack[1] != a;
#if ESTACKS > 1
  asleep[2] = asleep[2] && astack[2] != a
#endif
}

/* ---- the server ---- */

/* T5 to T9; `served` says whether there was a call for this thread. */
inline serve(a, l, w, served) {
  l = linkage[a];
  atomic {
    w = word[a];
    if
    :: FOR_ME(w, l) -> served = 1
    :: else -> served = 0
    fi
  }
  if
  :: !served
  :: served ->
    atomic { /* T5 */
      if
      :: linkage[a] == l -> linkage[a] = CLAIMED(GENERATION(l) + 1)
      :: else -> served = 0
      fi
    }
    if
    :: !served
    :: served ->
      atomic {
        assert(!executing[a] && executed[a] == GENERATION(l));
        executing[a] = 1;
        executed[a]++
      }
      atomic { executing[a] = 0; linkage[a] = FREE(GENERATION(l) + 1) } /* T8 */
      atomic { w = word[a]; word[a] = WORD(RETURNED, GENERATION(l) + 1) } /* T9 */
      if
      :: atomic { w & PARKED -> wake(a) }
      :: !(w & PARKED)
      fi
    fi
  fi;
  atomic { l = 0; w = 0 }
}

inline assign(e, a) {
  assert(estack[a] == 0 && astack[e] == 0);
  astack[e] = a;
  estack[a] = e;
  idle[e] = 0
}

/* The one unused for longest that executes no call now; the others look at any_waiting when they are done. */
#ifdef BROKEN_VICTIM_BY_LINKAGE
#define MAY_BE_SPARED(e) (astack[e] != 0 && !leave[e] && !IS_CLAIMED(linkage[astack[e]]))
#else
#define MAY_BE_SPARED(e) (astack[e] != 0 && !leave[e] && (parking[e] || !IS_CLAIMED(linkage[astack[e]])))
#endif

inline reclaim(v) {
  atomic {
    if
    :: MAY_BE_SPARED(1) -> v = 1
#if ESTACKS > 1
    :: MAY_BE_SPARED(2) -> v = 2
#endif
    :: else -> v = 0
    fi
  }
  if
  :: v == 0
  :: v != 0 ->
    leave[v] = 1; /* T14: the flag, */
#ifndef BROKEN_LEAVE_FLAG_ONLY
    word[astack[v]] = word[astack[v]] & ~PARKED; /* then the word, */
#endif
    atomic { wake(astack[v]); v = 0 } /* then the wake-up */
  fi
}

proctype estack_thread(byte me) {
  byte a, l, w;
  bit served;
assigned:
  skip;
end_idle:
  atomic { astack[me] != 0 -> a = astack[me] }
  attached[a] = 1;
look:
  if
  :: leave[me] || revoked -> goto detaching
  :: !leave[me] && !revoked
  fi;
  serve(a, l, w, served);
  if
  :: atomic { served -> served = 0; goto look }
  :: atomic { served && any_waiting -> served = 0; goto detaching } /* its caller has not paused for long */
  :: !served
  fi;
#if LEAVES > 0
  if
  :: atomic { leaves > 0 -> leaves--; goto detaching }
  :: skip
  fi;
#endif
#ifndef BROKEN_VICTIM_BY_LINKAGE
  parking[me] = 1; /* before the look at any_waiting: the pool sets that first, then looks here */
#endif
#ifndef BROKEN_ANY_WAITING_NOT_LOOKED_AT
  if
  :: any_waiting -> goto detaching
  :: !any_waiting
  fi;
#endif
  w = word[a]; /* T11 */
  atomic {
    if
    :: word[a] == w -> w = w | PARKED; word[a] = w
    :: else -> w = 0; parking[me] = 0; goto look
    fi
  }
  l = linkage[a];
  atomic {
    if
    :: FOR_ME(w, l) || leave[me] || revoked -> w = 0; l = 0; parking[me] = 0; goto look
    :: else -> l = 0
    fi
  }
  atomic {
    if
    :: word[a] == w -> asleep[me] = 1
    :: else
    fi;
    w = 0
  }
end_parked:
  atomic { !asleep[me] -> parking[me] = 0; goto look }

detaching: /* T14 */
  atomic { attached[a] = 0; parking[me] = 0 }
  lock();
  atomic { estack[a] = 0; unlock() } /* fence */
#ifndef BROKEN_DETACH_WITHOUT_LOOK
  serve(a, l, w, served);
#endif
  served = 0;
  lock();
  atomic { astack[me] = 0; leave[me] = 0; a = 0 }
#if SPENT
  atomic { /* the thread ends; another may be started, by the clerk only, whose scheduling is the domain's */
    idle[me] = 1;
#ifndef BROKEN_SPENT_WITHOUT_SUPPLY
    if
    :: nempty(waiting) -> supply = 1
    :: else
    fi;
#endif
    unlock();
    goto assigned
  }
#else
  atomic {
    do
    :: nempty(waiting) ->
      waiting ? a;
      any_waiting = nempty(waiting);
      if
      :: estack[a] == 0 && !revoked -> assign(me, a); break
      :: else
      fi
    :: empty(waiting) -> idle[me] = 1; break
    od;
    a = 0;
    unlock();
    goto assigned
  }
#endif
}

/* Associates an E-stack with the A-stack, under the lock. */
inline associate(a, v) {
  lock();
  if
  :: atomic { estack[a] != 0 || revoked -> skip }
  :: atomic { estack[a] == 0 && !revoked && waiting ?? [eval(a)] -> skip }
    reclaim(v)
  :: atomic { estack[a] == 0 && !revoked && !(waiting ?? [eval(a)]) ->
      if
      :: idle[1] -> assign(1, a)
#if ESTACKS > 1
      :: idle[2] -> assign(2, a)
#endif
      :: else -> waiting ! a; any_waiting = 1; v = 255
      fi
    }
    if
    :: v == 255 -> reclaim(v)
    :: else
    fi
  fi;
  unlock()
}

proctype clerk() {
  byte a, l, w, v;
#if STANDS_BY
  if /* for the first call of a new binding */
  :: atomic { !locked && idle[1] && empty(waiting) && estack[1] == 0 && !revoked -> assign(1, 1) }
  :: skip
  fi;
#endif
end_clerk:
  do
#ifdef BROKEN_BELL_DRAINED_LAST
  :: atomic { bell > 0 && !revoked -> a = 1 }
#else
  :: atomic { bell > 0 && !revoked -> bell--; a = 1 } /* drain first (here: one byte), look afterwards */
#endif
    do /* T13 */
    :: a <= ASTACKS ->
      if
      :: estack[a] != 0
      :: atomic { estack[a] == 0 -> l = linkage[a] }
        atomic {
          w = word[a];
          if
          :: FOR_ME(w, l) -> w = 1
          :: else -> w = 0
          fi;
          l = 0
        }
        if
        :: w == 0
        :: atomic { w == 1 -> w = 0 } associate(a, v)
        fi
      fi;
      a++
    :: a > ASTACKS -> break
    od;
#ifdef BROKEN_BELL_DRAINED_LAST
    bell = 0;
#endif
    a = 0
#if SPENT
  :: atomic { supply -> supply = 0 }
    lock();
    atomic {
      do
      :: nempty(waiting) && (idle[1]
#if ESTACKS > 1
         || idle[2]
#endif
         ) ->
        waiting ? a;
        any_waiting = nempty(waiting);
        if
        :: estack[a] == 0 && !revoked && idle[1] -> assign(1, a)
#if ESTACKS > 1
        :: estack[a] == 0 && !revoked && idle[2] -> assign(2, a)
#endif
        :: else
        fi
      :: else -> break
      od;
      a = 0;
      unlock()
    }
#endif
#if REVOKE
#ifdef BROKEN_ASKED_BEFORE_THE_FLAG
  :: atomic { client_dead && !revoked -> a = 1; v = (estack[1] != 0) + 2 * (estack[2] != 0) }
    revoked = 1;
#else
  :: atomic { client_dead && !revoked -> revoked = 1; a = 1 }
#endif
    do /* T18 for every A-stack */
    :: a <= ASTACKS ->
#ifdef BROKEN_ASKED_BEFORE_THE_FLAG
      w = (v >> (a - 1)) & 1;
#else
      w = (estack[a] != 0); /* who comes later sees the flag */
#endif
      word[a] = word[a] | REVOKED;
      word[a] = word[a] & ~PARKED;
      if
      :: w -> atomic { wake(a); w = 0 }
      :: !w
      fi;
      a++
    :: a > ASTACKS -> break
    od;
    atomic { a = 0; v = 0 }
#endif
  od
}

#if POLLER
proctype poller() { /* of the first A-stack */
  byte l, w;
  bit served;
end_scan:
  do
  :: FOR_ME(word[1], linkage[1]) && !revoked ->
    serve(1, l, w, served);
    served = 0
  od
}
#endif

/* ---- the callers ---- */

proctype caller(byte a) {
  byte n, w;
  bit may_sleep = 1;
  {
    do
    :: atomic { n < CALLS -> n++ }
      if
      :: atomic { w = word[a]; word[a] = WORD(CALLED, n) } /* T2 */
#if POLLER
      :: a == 1 -> atomic { may_sleep = 1; word[a] = WORD(CALLED, n) } /* T1, for the poller */
        if
        :: atomic { IS(word[a], RETURNED, n) -> goto taken }
        :: atomic { !IS(word[a], RETURNED, n) -> w = 0 }
        fi
#endif
      fi;
      if /* T4 */
#ifdef BROKEN_ROUSE_ONLY_THE_PARKED
      :: atomic { (w & PARKED) || may_sleep -> w = 0; may_sleep = 0; wake(a) }
#else
      :: atomic { (w & PARKED) || may_sleep || !attached[a] -> w = 0; may_sleep = 0; wake(a) }
#endif
        if
        :: attached[a]
        :: atomic { !attached[a] && bell < BELL -> bell++ }
#ifndef BROKEN_FULL_BELL_IS_WAITED_FOR
        :: atomic { !attached[a] && bell >= BELL -> skip } /* EAGAIN */
#endif
        fi
#ifdef BROKEN_ROUSE_ONLY_THE_PARKED
      :: atomic { !(w & PARKED) && !may_sleep -> w = 0 }
#else
      :: atomic { !(w & PARKED) && !may_sleep && attached[a] -> w = 0 }
#endif
      fi;
      IS(word[a], RETURNED, n);
    taken:
      skip
    :: atomic { n == CALLS -> break }
    od;
    done++
  } unless { atomic { client_dead -> n = 0; w = 0; may_sleep = 0 } }
}

#if REVOKE
proctype fate() { client_dead = 1 }
#endif

proctype judge() {
  byte i;
  timeout;
  assert(done == ASTACKS || client_dead);
  assert(!locked);
  for (i : 1 .. ASTACKS) {
    assert(!executing[i] && !IS_CLAIMED(linkage[i]));
    assert(executed[i] == CALLS || client_dead);
    assert(estack[i] == 0 || astack[estack[i]] == i)
  }
  for (i : 1 .. ESTACKS) {
    assert(idle[i] == (astack[i] == 0));
    assert(astack[i] == 0 || (estack[astack[i]] == i && asleep[i] && !leave[i]));
    assert(!client_dead || idle[i])
  }
}

init {
  atomic {
    idle[1] = 1;
    run estack_thread(1);
#if ESTACKS > 1
    idle[2] = 1;
    run estack_thread(2);
#endif
    run clerk();
#if POLLER
    run poller();
#endif
    run caller(1);
    run caller(2);
#if ASTACKS > 2
    run caller(3);
#endif
#if REVOKE
    run fate();
#endif
    run judge()
  }
}
