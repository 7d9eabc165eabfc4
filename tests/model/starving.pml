/*
 * Two callers that call for ever with one A-stack, for spin: each of them gets it again and again. docs/MODELS.md has
 * the table: L1, L2, L5, L6, L9 and G3 are its names. Run by tests/model/check.sh starving.
 *
 * leases.pml has the leases with all that memory does, but with so many calls. Here memory is sequentially consistent,
 * and a caller starves after LOOKS looks in vain, where the code takes the time. The calls go on for ever, so what is
 * checked needs weak fairness (kind `fair`): no caller is kept for ever from a step that it can always take. A caller
 * that sleeps can take none until somebody wakes it; no sleep ends by itself, but for this:
 *
 * With STALLED, the second caller has no processor from when it starves. A caller that is behind then finds in the end
 * that the A-stack has been idle for long; where each caller that starves takes its steps, that does not happen. The
 * first caller never starves: its calls have no time for it. From then on it must get the A-stack again and again.
 */

#ifndef LOOKS
#define LOOKS 2
#endif

#define CALLERS 2

/* The A-stack is in the LIFO, leased to a caller (its number, from 1), or held by one that has leased nothing. */
bit in_lifo = 1;
byte leased;
bit in_call[CALLERS], wanted[CALLERS];
bit lock;

byte waiters, starvers;
bit news[CALLERS]; /* the count of wake-ups has changed since this caller read it */

byte holder; /* the judge's: in a call of this one */

#ifdef STALLED
bit stalled;
#define MAY_STARVE (me == 1)
#define IDLE_FOR_LONG (stalled && (in_lifo || (leased && !in_call[leased - 1])))
#else
#define MAY_STARVE 1
#define IDLE_FOR_LONG 0
#endif

#ifdef FAIR
#ifdef STALLED
ltl turns { [](stalled -> <>(holder == 1)) }
#else
ltl turns { []<>(holder == 1) && []<>(holder == 2) }
#endif
#endif

inline wake_waiters() {
  d_step { news[0] = 1; news[1] = 1 }
}

inline take_out() { /* of the own lease, by an exchange */
  atomic {
    if
    :: leased == me + 1 -> leased = 0; got = 1
    :: else
    fi
  }
}

inline serve_waiters() {
  if
  :: waiters || starvers ->
#ifndef BROKEN_KEEPS_ITS_LEASE
    if
    :: starvers -> /* L9 */
      take_out();
      if
      :: got -> got = 0; in_lifo = 1
      :: else
      fi
    :: else
    fi;
#endif
    wake_waiters()
  :: else
  fi
}

inline take_leased() { /* L1 */
  in_call[me] = 1;
  if
  :: leased == me + 1 && !wanted[me] -> got = 1; fast = 1
  :: else -> in_call[me] = 0
  fi
}

inline end_a_lease() { /* L6 */
  atomic { !lock -> lock = 1 }
  atomic { at = leased }
  if
  :: at ->
    wanted[at - 1] = 1;
    if
    :: !in_call[at - 1] ->
      atomic {
        if
        :: leased == at -> leased = 0; got = 1
        :: else
        fi
      }
    :: else
    fi;
    wanted[at - 1] = 0
  :: else
  fi;
  at = 0;
  lock = 0
}

inline wait() { /* G3 */
  atomic { found = (starvers == 0); waiters++ }
  if
  :: behind
  :: !behind ->
    found = in_lifo;
    at = leased;
    if
    :: !found && at -> found = !in_call[at - 1]
    :: else
    fi;
    at = 0
  fi;
  if
  :: !found -> /* asleep until then */
    if
    :: news[me]
#ifndef BROKEN_WAITS_FOR_THE_STALLED
    :: behind && IDLE_FOR_LONG -> late = 1
#endif
    fi
  :: found
  fi;
  found = 0;
  waiters--
}

inline take_slow() {
  do
  :: news[me] = 0;
#ifndef BROKEN_GOES_FIRST
    behind = (!starves && starvers && !late); /* L9 */
    late = 0;
#endif
    if
    :: behind ->
#ifdef BROKEN_KEEPS_ITS_OWN_BEHIND
      skip
#else
      take_out()
#endif
    :: !behind ->
      take_leased();
      if
      :: !got ->
        atomic {
          if
          :: in_lifo -> in_lifo = 0; got = 1
          :: else
          fi
        }
      :: else
      fi;
      if
      :: !got -> end_a_lease()
      :: else
      fi
    fi;
    if
    :: got -> break
    :: !got && !starves && looks == LOOKS && MAY_STARVE ->
      starves = 1;
      starvers++;
#ifdef STALLED
      stalled = 1;
end_stalled: false
#endif
    :: else ->
      looks = (starves || looks == LOOKS -> looks : looks + 1);
      wait()
    fi
  od;
  behind = 0;
  looks = 0;
  if
  :: starves ->
    starves = 0;
    atomic { starvers--; found = (waiters && !starvers) }
    if
    :: found -> wake_waiters()
    :: else
    fi;
    found = 0
  :: else
  fi
}

proctype caller(byte me) {
  byte looks, at;
  bit got, fast, starves, behind, found, late;
  do
  :: take_leased();
    if
    :: !got -> take_slow()
    :: else
    fi;
    got = 0;
    atomic { assert(!holder); holder = me + 1 }
    holder = 0;
    if
    :: fast -> in_call[me] = 0 /* L2 */
    :: !fast ->
      atomic { /* L5; what was not to be leased goes into the LIFO */
        if
        :: !lock -> leased = me + 1
        :: else -> in_lifo = 1
        fi
      }
    fi;
    fast = 0;
    serve_waiters()
  od
}

init {
  atomic {
    run caller(0);
    run caller(1)
  }
}
