/*
 * The call word of one A-stack for the model checker spin. docs/CALL_WORD.md has the table; T1 .. T19 are its names.
 *
 * One client thread makes CALLS calls on one A-stack, by either gate, each with or without a deadline and (CANCELS)
 * within a scope whose cancellation comes at any moment, or outside of it. A call that ends so leaves its A-stack to
 * the quarantine, which the next call empties, and with LOOKERS a second thread of the client. The server domain
 * has POLLERS pollers (each may stop for ever, or stall between seeing a call and claiming it), a supply of two
 * E-stacks, a clerk that answers the bell and a reclaimer that detaches E-stacks. FATE chooses what goes wrong, at any
 * step: nothing, the server dies, the client dies, or the binding is hung up while both live; then each domain has its
 * watcher, too.
 *
 * What is checked (tests/model/check.sh runs it):
 *   no invalid end state    every call and every quarantine ends, and without any time limit: the model has no 100 ms
 *   no cycle at all (-DNP)  with no progress label in the model, every cycle is an error: so every run is finite, and
 *                           "every call ends" needs no assumption of fairness
 *   assertions              no generation is executed twice; never two threads in the A-stack; arguments and results
 *                           belong to the generation that their reader thinks of; no claim is left behind
 *
 * One step (one `atomic`) is one access to something that another thread changes, with the private computing around it.
 * The futex is the kernel's: compare and queue in one step, wake by bitset. The client's plain store (exchange gate)
 * goes through a store buffer that drains at any later time, as on a real processor; its other accesses to the word are
 * read-modify-writes or system calls, which wait for the buffer. Where the server needs a store to be visible before a
 * later load, the table says "fence".
 *
 * A BROKEN_ macro takes one rule away. Every one of them must make spin report an error, or the model proves nothing.
 */

#ifndef CALLS
#define CALLS 2
#endif
#ifndef POLLERS
#define POLLERS 1
#endif
#ifndef DETACHES
#define DETACHES 1
#endif
#ifndef LEAVES
#define LEAVES 0 /* how often an E-stack leaves without being asked to, because another A-stack waits for one */
#endif
#ifndef DEADLINES
#define DEADLINES 1 /* may a call carry a deadline? */
#endif
#ifndef CANCELS
#define CANCELS 0 /* T19: may a call be within a scope that another thread cancels? */
#endif
#ifndef ASKS
#define ASKS 0 /* may a procedure ask whether its caller's deadline has passed? */
#endif
#ifndef LOOKERS
#define LOOKERS CANCELS /* does another thread of the client look into the quarantine? */
#endif
#ifndef STUCK
#define STUCK 0 /* with CANCELS: the procedure of a call within the scope may never end */
#endif
#ifndef FATE
#define FATE 0 /* 0 nothing, 1 the server dies, 2 the client dies, 3 hang-up */
#endif

#include "word.pml"

/* In the region. */
byte word = WORD(RETURNED, 0);
byte argument;
byte result;
byte refused; /* the generation whose status says "binding revoked" */
bit attached; /* the hint that an E-stack is associated, so that the bell need not be rung */

/* The client's store buffer: at most one store, to the word. */
bit buffered;
byte buffer;
#define CLIENT_SEES (buffered -> buffer : word)

/* The kernel. */
#define CLIENT 0 /* the waiters; 1 and 2 are the E-stacks */
bit asleep[3];
#if CANCELS
bit on_cancellation; /* the caller is queued on the cancellation's word, too */
#endif
bit bell; /* one byte or more stands in the socketpair; a full one loses nothing, since the clerk will still look */

/* Private to the server. */
byte linkage = FREE(0);
byte associated; /* the A-stack's E-stack: 0 none, 1, 2 */
bit detach[3];
bit in_use[3];
#if LEAVES > 0
byte leaves = LEAVES;
#endif
bit server_revoked;

/* Private to the client. */
bit client_revoked;
byte n; /* the generation of its last call */
#define LISTED 0
#define IN_CALL 1
#define QUARANTINED 2
byte home; /* where the A-stack is */
#if CANCELS
bit cancelled; /* the cancellation's word; for good */
bit scoped;    /* the call is within the scope */
#endif

/* What went wrong. */
bit server_dead, client_dead, hung_up;

/* Ghosts, for the assertions only. */
byte executing;
bit executed[CALLS + 1];
bit client_done;
bit limited;     /* the call carries a deadline */
byte told_over;  /* the generation whose procedure was told that its deadline has passed */
bit stuck;       /* a procedure never ends */

/* ---- the futex ---- */

inline futex_block(who, expected) { /* the first half of FUTEX_WAIT_BITSET; the second is to wait for !asleep[who] */
  if
  :: word == (expected) -> asleep[who] = 1
  :: else
  fi
}

/* A caller that may be cancelled sleeps on two words, and the kernel's wait for many has no bits: it is woken with the
 * E-stacks. Therefore all are woken, and how many there were says nothing. */
#if CANCELS
#define CALLER_HAS_NO_BIT scoped
#else
#define CALLER_HAS_NO_BIT false
#endif

#ifdef BROKEN_SHARED_BITSET /* and wake one */
inline wake_any(woken) {
  if
  :: asleep[0] -> asleep[0] = 0; woken = 1
  :: asleep[1] -> asleep[1] = 0; woken = 1
  :: asleep[2] -> asleep[2] = 0; woken = 1
  :: else -> woken = 0
  fi
}
inline wake_caller(woken) { wake_any(woken) }
inline wake_estack(woken) { wake_any(woken) }
#else
inline wake_caller(woken) { woken = asleep[CLIENT]; asleep[CLIENT] = 0 }
#ifdef BROKEN_WAKES_ONE
inline wake_estack(woken) {
  if
  :: CALLER_HAS_NO_BIT && asleep[CLIENT] -> asleep[CLIENT] = 0; woken = 1
  :: else -> woken = asleep[1] || asleep[2]; asleep[1] = 0; asleep[2] = 0
  fi
}
#else
inline wake_estack(woken) {
  woken = asleep[1] || asleep[2];
  asleep[1] = 0;
  asleep[2] = 0;
  asleep[CLIENT] = asleep[CLIENT] && !CALLER_HAS_NO_BIT
}
#endif
#endif

/* ---- the server: steps a to g, the same for a poller and an E-stack ---- */

/* a: T5. `l` is the linkage as it was when the call was seen; leaves 1 in `mine` if this thread has the call now. */
inline claim(l, mine) {
  atomic {
#ifdef BROKEN_NO_CLAIM
    linkage = CLAIMED(GENERATION(l) + 1);
    mine = 1
#else
    if
    :: linkage == l -> linkage = CLAIMED(GENERATION(l) + 1); mine = 1
    :: else -> mine = 0
    fi
#endif
  }
}

inline serve(l, w, woken) {
  atomic { /* b: load the word once, after the claim */
    w = word;
    if
    :: IS(w, CALLED, GENERATION(l) + 1) && !server_revoked -> /* c, d, e */
      executing++;
      assert(executing == 1);
      assert(!executed[GENERATION(l) + 1]);
      executed[GENERATION(l) + 1] = 1;
      assert(argument == GENERATION(l) + 1);
      w = 1
    :: IS(w, CALLED, GENERATION(l) + 1) && server_revoked -> refused = GENERATION(l) + 1; w = 2
    :: IS(w, ABANDONED, GENERATION(l) + 1) -> /* T6: abandoned before it was begun */
#ifdef BROKEN_CANCELLER_ABANDONS
      refused = GENERATION(l) + 1; /* else nobody reads it */
#endif
      w = 2
    :: else -> linkage = l; w = 0 /* T7: not a call after all */
    fi
  }
  if
  :: atomic {
      w != 0 ->
      if
      :: w == 1 ->
        assert(argument == GENERATION(l) + 1);
        executing--;
        if
        :: result = GENERATION(l) + 1
        :: ASKS && limited -> /* it asks, and hears that its time is over: what it returns then is no result */
          told_over = GENERATION(l) + 1;
#ifdef BROKEN_TOLD_OVER_ANSWERS
          result = GENERATION(l) + 1
#else
          refused = GENERATION(l) + 1
#endif
        fi
      :: else
      fi;
#ifndef BROKEN_RETURN_BEFORE_RELEASE
      linkage = FREE(GENERATION(l) + 1) /* f: T8 */
#endif
    }
#ifdef BROKEN_PLAIN_STORE_RETURN
    w = word;
    word = WORD(RETURNED, GENERATION(l) + 1);
#else
    atomic { w = word; word = WORD(RETURNED, GENERATION(l) + 1) } /* g: T9 (T10 if it was abandoned) */
#endif
#ifdef BROKEN_RETURN_BEFORE_RELEASE
    linkage = FREE(GENERATION(l) + 1);
#endif
    if
    :: atomic { w & SLEEPS -> wake_caller(woken) }
    :: !(w & SLEEPS)
    fi;
#ifndef BROKEN_RETURN_FORGETS_ESTACK
    if
    :: atomic { w & PARKED -> wake_estack(woken) } /* it parked while this thread had the call */
    :: !(w & PARKED)
    fi;
#endif
    atomic { w = 0; woken = 0 }
  :: atomic { w == 0 }
#if STUCK
  :: atomic { w == 1 && scoped && !stuck -> stuck = 1 }
  end_stuck:
    false
#endif
  fi;
}

proctype poller() {
  byte l, w;
  bit mine, woken;
  {
    skip;
  end_scan:
    do
    :: atomic { FOR_ME(word, linkage) -> l = linkage }
      claim(l, mine); /* here it may be late by any number of calls */
      if
      :: mine -> serve(l, w, woken)
      :: else
      fi;
      atomic { l = 0; w = 0; mine = 0 }
    :: break /* it parks, or is switched out for good */
    od
  } unless { atomic { server_dead -> l = 0; w = 0; mine = 0; woken = 0 } }
}

proctype estack(byte me) {
  byte l, w;
  bit mine, woken;
  {
    skip;
  end_idle:
    associated == me;
    attached = 1;
  look:
    l = linkage;
    atomic {
      w = word;
      if
      :: FOR_ME(w, l) -> w = 0; goto have
      :: else -> l = 0; w = 0
      fi;
      if
      :: server_revoked || detach[me] -> goto detaching
#if LEAVES > 0
      :: leaves > 0 -> leaves--; goto detaching
#endif
      :: !(server_revoked || detach[me])
      fi
    }
    /* T11: park, whatever the turn is; a call that somebody else has (T12) is no reason not to */
#ifdef BROKEN_LINKAGE_BEFORE_WORD
    l = linkage;
#endif
    w = word;
#ifdef BROKEN_PARK_STORE
    atomic { w = w | PARKED; word = w }
#else
    atomic {
      if
      :: word == w -> w = w | PARKED; word = w
      :: else -> w = 0; l = 0; goto look
      fi
    }
#endif
#ifndef BROKEN_LINKAGE_BEFORE_WORD
    l = linkage; /* the word first, the linkage second: it is then never older than the call that it is asked about */
#endif
    atomic {
      if
      :: FOR_ME(w, l) -> w = 0; l = 0; goto look
      :: else -> l = 0
      fi;
      if
      :: detach[me] -> w = 0; goto look
#ifndef BROKEN_PARK_WITHOUT_REVOKED
      :: server_revoked -> w = 0; goto look
#endif
      :: else
      fi
    }
#ifdef BROKEN_PARK_WITHOUT_SLEEP
    atomic { w = 0; goto look }
#endif
    atomic { futex_block(me, w); w = 0 }
  end_parked:
    atomic { !asleep[me]; goto look }

  have:
    claim(l, mine);
    if
    :: mine -> serve(l, w, woken)
    :: else
    fi;
    atomic { mine = 0; l = 0; w = 0; goto look }

  detaching: /* T14 */
    attached = 0;
#ifndef BROKEN_LOOK_BEFORE_DISSOCIATION
    associated = 0; /* fence */
#endif
#ifndef BROKEN_DETACH_WITHOUT_LOOK
    l = linkage;
    atomic {
      w = word;
      if
      :: FOR_ME(w, l) -> w = 0
      :: else -> w = 1
      fi
    }
    if
    :: w == 0 ->
      claim(l, mine);
      if
      :: mine -> serve(l, w, woken)
      :: else
      fi
    :: else
    fi;
#endif
#ifdef BROKEN_LOOK_BEFORE_DISSOCIATION
    associated = 0;
#endif
    atomic { mine = 0; l = 0; w = 0; detach[me] = 0; in_use[me] = 0; goto end_idle }
  } unless { atomic { server_dead -> l = 0; w = 0; mine = 0; woken = 0 } }
}

proctype clerk() {
  byte l, w;
  {
    skip;
  end_clerk:
    do /* T13 */
#ifdef BROKEN_BELL_DRAINED_LAST
    :: bell
#else
    :: atomic { bell -> bell = 0 } /* drain first, look afterwards */
#endif
      if
      :: associated != 0 || server_revoked
      :: atomic { associated == 0 && !server_revoked -> l = linkage }
        atomic {
          w = word;
          if
          :: FOR_ME(w, l) -> l = 0; w = 1
          :: else -> l = 0; w = 0
          fi
        }
        if
        :: atomic { w == 1 && associated == 0 && !in_use[1] && !server_revoked -> in_use[1] = 1; associated = 1 }
        :: atomic { w == 1 && associated == 0 && in_use[1] && !in_use[2] && !server_revoked ->
            in_use[2] = 1; associated = 2 }
        :: w == 0 || associated != 0 || server_revoked
        fi
      fi;
      w = 0;
#ifdef BROKEN_BELL_DRAINED_LAST
      bell = 0;
#endif
    od
  } unless { atomic { server_dead -> l = 0; w = 0 } }
}

#if DETACHES > 0
proctype reclaimer() {
  byte left = DETACHES, who;
  bit woken;
  {
    skip;
  end_reclaimer:
    do
    :: atomic { left > 0 && associated != 0 && !server_revoked -> left--; who = associated; detach[who] = 1 }
#ifndef BROKEN_DETACH_FLAG_ONLY
      word = word & ~PARKED; /* the private flag first, then the word: a sleep not yet begun fails its comparison */
#endif
      atomic { wake_estack(woken); woken = 0 }
      atomic { !detach[who] -> who = 0 } /* it has let go */
    od
  } unless { atomic { server_dead -> left = 0; who = 0 } }
}
#endif

/* ---- the client ---- */

/* The look at the cancellation before T3 and T3 are one step here: who cancels does not look at the word. */
#if CANCELS
#define NOTICED (scoped && cancelled)
#else
#define NOTICED false
#endif
#if CANCELS
#define WOKEN asleep[CLIENT] = 0; on_cancellation = 0
#else
#define WOKEN asleep[CLIENT] = 0
#endif

proctype client() {
  byte w;
  bit may_sleep, woken;
  {
    may_sleep = 1;
  end_taking: /* while the A-stack is in quarantine; the judge looks at that */
    do
    :: atomic {
        n < CALLS && home == LISTED ->
        home = IN_CALL;
        n++;
        w = 0;
        woken = 0;
        if
        :: limited = 0
        :: DEADLINES -> limited = 1
        fi;
#if CANCELS
        if
        :: scoped = 0
        :: !cancelled -> scoped = 1 /* else it is not made at all */
        fi;
#endif
        assert(executing == 0);
        argument = n /* step 3 */
      }
      if /* step 4 */
      :: atomic { !buffered -> buffer = WORD(CALLED, n); buffered = 1; may_sleep = 1 } /* T1: exchange gate */
        if
        :: atomic { IS(CLIENT_SEES, RETURNED, n) -> goto take }
        :: !IS(CLIENT_SEES, RETURNED, n) /* not picked up for long enough */
        fi
      :: atomic { !buffered -> w = word; word = WORD(CALLED, n) } /* T2: handoff gate */
      fi;

      /* T4: before it sleeps, whoever may serve the call has been woken, or the bell was rung */
      if
#ifdef BROKEN_ROUSE_ONLY_THE_PARKED
      :: atomic { !(w & PARKED) && !may_sleep -> goto wait }
#else
      /* associated, and not parked: awake, will look */
      :: atomic { !(w & PARKED) && !may_sleep && attached -> goto wait }
#endif
      :: atomic { ((w & PARKED) || may_sleep || !attached) && !buffered -> w = 0; may_sleep = 0; wake_estack(woken) }
      fi;
      if
      :: atomic { !attached -> woken = 0 } /* whoever was woken: how many sleepers of what kind says nothing */
#ifndef BROKEN_NO_BELL
        bell = 1
#endif
      :: attached
      fi;

    wait: /* step 5: each turn is one look, or one step towards sleep; how long one looks is not said */
      if
      :: atomic { IS(CLIENT_SEES, RETURNED, n) -> goto take }
      :: atomic { client_revoked && !IS(CLIENT_SEES, RETURNED, n) -> goto failed }
#ifdef BROKEN_CANCELLER_ABANDONS
      :: atomic { IS(CLIENT_SEES, ABANDONED, n) -> assert(scoped && cancelled); goto abandon }
#endif
#ifndef BROKEN_REVOKED_WORD_IGNORED
      :: atomic { (CLIENT_SEES & REVOKED) && !IS(CLIENT_SEES, RETURNED, n) -> goto failed }
#endif
      :: atomic { limited && IS(CLIENT_SEES, CALLED, n) -> goto abandon }
#if CANCELS
      :: atomic { scoped && cancelled && IS(CLIENT_SEES, CALLED, n) -> goto abandon } /* between any two sleeps */
#endif
#ifdef BROKEN_SLEEP_STORE
      :: atomic { !buffered && IS(word, CALLED, n) -> w = WORD(CALLED, n) | SLEEPS }
        word = w;
#else
#ifdef BROKEN_REVOKED_WORD_IGNORED
      :: atomic { !buffered && IS(word, CALLED, n) && !NOTICED && !client_revoked -> /* T3 */
          word = word | SLEEPS; w = word }
#else
      :: atomic { !buffered && IS(word, CALLED, n) && !NOTICED && !(word & REVOKED) -> /* T3 */
          word = word | SLEEPS; w = word }
#endif
#endif
      fi;
#ifndef BROKEN_FLAG_LOOKED_AT_EARLY
      if /* with the flag in the word, once more: is the server alive? */
      :: atomic {
          client_revoked ->
          w = 0;
          if
          :: IS(word, RETURNED, n) -> goto take
          :: else -> goto failed
          fi
        }
      :: !client_revoked
      fi;
#endif
      atomic { futex_block(CLIENT, w); w = 0 }
#if CANCELS
      if
      :: atomic {
          scoped && asleep[CLIENT] -> /* queued on the first word; now the second */
          if
#ifndef BROKEN_CANCELLATION_NOT_COMPARED
          :: cancelled -> asleep[CLIENT] = 0
#endif
#ifndef BROKEN_CANCELLATION_NOT_SLEPT_ON
          :: else -> on_cancellation = 1
#else
          :: else
#endif
          fi
        }
      :: !(scoped && asleep[CLIENT])
      fi;
#endif
      if
      :: atomic { !asleep[CLIENT] -> WOKEN; goto wait }
      :: atomic { limited && asleep[CLIENT] -> WOKEN; goto abandon }
      fi;

    abandon:
      skip;
#ifdef BROKEN_ABANDON_STORE
      if
      :: atomic { !buffered && IS(word, CALLED, n) }
        word = WORD(ABANDONED, n)
      :: atomic { !buffered && !IS(word, CALLED, n) -> goto take }
      fi;
#else
      atomic { /* T15 */
        !buffered;
        if
        :: IS(word, CALLED, n) -> word = WORD(ABANDONED, n) | (word & (PARKED | REVOKED)); limited = limited && ASKS
#ifdef BROKEN_CANCELLER_ABANDONS
        :: IS(word, ABANDONED, n)
#endif
        :: else -> goto take
        fi
      }
#endif
#ifdef BROKEN_NO_QUARANTINE
      home = LISTED;
#else
      home = QUARANTINED;
#endif
      goto next;

    take:
      atomic { /* step 6 */
        assert(result == n || refused == n);
        assert(told_over != n || result != n);
        assert(home == IN_CALL);
        home = LISTED;
        limited = 0
      }
    next:
      skip
    :: atomic { home == QUARANTINED && IS(word, RETURNED, n) -> home = LISTED } /* T16 */
    :: atomic { home == QUARANTINED && client_revoked -> break }
    :: atomic { n == CALLS && (home == LISTED || LOOKERS) -> break }
    od;
  failed:
    client_done = 1
  } unless { atomic { client_dead -> w = 0; may_sleep = 0; woken = 0 } }
}

#if LOOKERS
/* Another thread of the client that looks for an A-stack, or gives unused ones back: T16 is under a lock. */
proctype quarantine() {
  {
    skip;
  end_quarantine:
    do
#ifdef BROKEN_RELEASE_WITHOUT_LOCK
    :: home == QUARANTINED && IS(word, RETURNED, n) ->
      home = LISTED
#else
    :: atomic { home == QUARANTINED && IS(word, RETURNED, n) -> home = LISTED }
#endif
    od
  } unless { client_dead }
}
#endif

#if CANCELS
proctype canceller() { /* T19 */
  {
    cancelled = 1;
#ifdef BROKEN_CANCELLER_ABANDONS
    if
    :: scoped && home == IN_CALL ->
      atomic { /* whatever call that is by now */
        if
        :: (word & 3) == CALLED -> word = (word & ~(3 | SLEEPS)) | ABANDONED
        :: else
        fi
      }
    :: else
    fi;
#endif
    atomic {
      if
      :: on_cancellation -> asleep[CLIENT] = 0
      :: else
      fi
    }
  } unless { client_dead }
}
#endif

/* ---- everything around them ---- */

proctype store_buffer() {
end_buffer:
  do
  :: atomic { buffered -> word = buffer; buffered = 0; buffer = 0 }
  od
}

#if FATE != 0
proctype client_watcher() { /* T17 */
  bit woken;
end_watch:
  server_dead || hung_up;
#ifndef BROKEN_REVOKE_BIT_ONLY
  client_revoked = 1;
#endif
#ifndef BROKEN_REVOKE_FLAG_ONLY
  word = word | REVOKED;
#endif
  atomic { wake_caller(woken) }
}

proctype server_watcher() { /* T18 */
  bit woken;
  {
    skip;
  end_watch:
    (client_dead && !buffered) || hung_up;
    server_revoked = 1;
#ifndef BROKEN_REVOKE_FLAG_ONLY
    word = word | REVOKED; /* for the client, if it lives */
#endif
#ifndef BROKEN_REVOKE_LEAVES_PARKED
    word = word & ~PARKED; /* the client's side may have set REVOKED before: this changes the word in any case */
#endif
    atomic { wake_estack(woken); woken = 0 }
    !in_use[1] && !in_use[2] /* every E-stack lets go */
  } unless { server_dead }
}

proctype fate() {
#if FATE == 1
  atomic {
    server_dead = 1;
    asleep[1] = 0;
    asleep[2] = 0;
    executing = 0;
    linkage = 0; /* what is private to the dead is forgotten: fewer states */
    associated = 0;
    bell = 0;
    detach[1] = 0;
    detach[2] = 0;
    in_use[1] = 0;
    in_use[2] = 0
  }
#elif FATE == 2
  atomic {
    client_dead = 1;
    asleep[CLIENT] = 0;
#if CANCELS
    on_cancellation = 0;
    scoped = 0; /* private to the dead */
    cancelled = 0;
#endif
    home = LISTED
  }
#else
  hung_up = 1
#endif
}
#endif

proctype judge() {
  timeout; /* nothing else can move */
  /* Every call ends: one whose procedure never does leaves its A-stack in quarantine, and who wants it, waits. */
  assert(client_done || client_dead || (stuck && home == QUARANTINED));
  assert(home == LISTED || stuck || server_dead || hung_up); /* the A-stack came back */
  assert(server_dead || stuck || !IS_CLAIMED(linkage));
  assert(executing == 0 || stuck);
  assert(!asleep[CLIENT])
}

init {
  atomic {
    run client();
#if LOOKERS
    run quarantine();
#endif
#if CANCELS
    run canceller();
#endif
    run estack(1);
#if DETACHES > 0 || LEAVES > 0
    run estack(2);
#endif
#if DETACHES > 0
    run reclaimer();
#endif
    run clerk();
#if POLLERS > 0
    run poller();
#endif
#if POLLERS > 1
    run poller();
#endif
    run store_buffer();
#if FATE != 0
    run client_watcher();
    run server_watcher();
    run fate();
#endif
    run judge()
  }
}
