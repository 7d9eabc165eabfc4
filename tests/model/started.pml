/*
 * Calls that are started and finished later, calls that nobody finishes, and the hint `polled`, for spin.
 *
 * One client thread makes CALLS calls on one A-stack. Each is, by choice: synchronous; started and finished; started
 * and dropped; one-way; or started and watched by a CompletionQueue, whose own thread makes T3 and sleeps without a bit
 * of its own. Each may be of a procedure that may block, which no poller serves. The server has one E-stack that leaves
 * LEAVES times by itself, a clerk, and a poller that comes POLLS times and goes when it likes, or stays for ever. With
 * STUCK another client's procedure may keep the poller for ever.
 *
 * Nobody need wait for a started call, so T4 cannot be left to the wait: after T1 client and poller are a Dekker pair
 * over the word and the hint. The client stores the word and loads the hint; the poller clears the hint, fences, and
 * looks at the word. With FENCE=1 the client's fence orders nothing and the poller's (a membarrier) drains the client's
 * store buffer; with FENCE=0 the kernel refuses that, as the hint says: a client that sees it makes a full fence and
 * looks once more. An E-stack that leaves is a Dekker pair with such a client, too, over the word and `attached`.
 *
 * What is checked: as in call_word.pml; also that a one-way call is executed although nobody ever waits for it.
 */

#ifndef CALLS
#define CALLS 2
#endif
#ifndef POLLS
#define POLLS 1
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef KINDS
#define KINDS 4 /* the highest of the kinds below that may be chosen */
#endif
#ifndef FIRST_KIND
#define FIRST_KIND 0
#endif
#ifndef BLOCKING
#define BLOCKING 1 /* may a procedure block? */
#endif
#ifndef STUCK
#define STUCK 0
#endif
#ifndef FATE
#define FATE 0 /* 0 nothing, 1 the server dies, 2 the client dies, 3 hang-up */
#endif

#include "word.pml"

#define SYNCHRONOUS 0
#define FINISHED 1
#define DROPPED 2
#define ONE_WAY 3
#define WATCHED 4

/* In the region. */
byte word = WORD(RETURNED, 0);
byte argument;
byte result;
byte refused; /* the generation whose status says "binding revoked" */
bit attached;
bit polled;    /* the hint */
bit may_block; /* stands with the procedure in the word's high half, which is stored with CALLED(n) */

/* The client's store buffer: at most one store, to the word. */
bit buffered;
byte buffer;
#define CLIENT_SEES (buffered -> buffer : word)

/* The kernel. */
#define CLIENT 0
#define ESTACK 1
#define QUEUE 2 /* sleeps on several words: is woken with either kind */
bit asleep[3];
bit bell;

/* Private to the server. */
byte linkage = FREE(0);
bit associated;
bit in_use;
bit hot; /* the truth behind `polled` */
bit server_revoked;
#if LEAVES > 0
byte leaves = LEAVES;
#endif

/* Private to the client. */
bit client_revoked;
byte watched; /* the generation that the queue is to watch, 0 none; under the queue's lock */
bit ready;    /* the queue has said that it has returned */
bit changed;  /* the queue's own futex */

bit server_dead, client_dead, hung_up;

/* Ghosts, for the assertions only. */
byte executing;
bit executed[CALLS + 1];
bit must_execute[CALLS + 1];
bit client_done;

inline wake_caller() { asleep[CLIENT] = 0; asleep[QUEUE] = 0 }
inline wake_estack() { asleep[ESTACK] = 0; asleep[QUEUE] = 0 }

/* ---- the server ---- */

inline claim(l, mine) { /* T5 */
  atomic {
    if
    :: linkage == l -> linkage = CLAIMED(GENERATION(l) + 1); mine = 1
    :: else -> mine = 0
    fi
  }
}

inline serve(l, w) {
  atomic {
    w = word;
    if
    :: IS(w, CALLED, GENERATION(l) + 1) && !server_revoked ->
      executing++;
      assert(executing == 1);
      assert(!executed[GENERATION(l) + 1]);
      executed[GENERATION(l) + 1] = 1;
      assert(argument == GENERATION(l) + 1);
      w = 1
    :: IS(w, CALLED, GENERATION(l) + 1) && server_revoked -> refused = GENERATION(l) + 1; w = 2
    :: IS(w, ABANDONED, GENERATION(l) + 1) -> w = 2 /* T6 */
    :: else -> linkage = l; w = 0 /* T7 */
    fi
  }
  if
  :: atomic {
      w != 0 ->
      if
      :: w == 1 -> assert(argument == GENERATION(l) + 1); result = GENERATION(l) + 1; executing--
      :: else
      fi;
      linkage = FREE(GENERATION(l) + 1) /* T8 */
    }
    atomic { w = word; word = WORD(RETURNED, GENERATION(l) + 1) } /* T9, T10 */
    if
#ifdef BROKEN_T10_WAKES_NOBODY
    :: atomic { (w & SLEEPS) && !IS(w, ABANDONED, GENERATION(l) + 1) -> wake_caller() }
    :: !(w & SLEEPS) || IS(w, ABANDONED, GENERATION(l) + 1)
#else
    :: atomic { w & SLEEPS -> wake_caller() }
    :: !(w & SLEEPS)
#endif
    fi;
    if
    :: atomic { w & PARKED -> wake_estack() }
    :: !(w & PARKED)
    fi;
    w = 0
  :: atomic { w == 0 }
  fi
}

#if POLLS > 0
proctype poller() {
  byte l, w, left_to_estack, polls = POLLS;
  bit mine, stays, last;
  {
    do
    :: atomic { polls > 0 && !server_revoked -> polls--; hot = 1; last = 0; if :: stays = 0 :: stays = 1 fi }
      polled = 1;
    end_scan:
      if
#if STUCK
      :: skip; end_stuck: false
#endif
      :: atomic { FOR_ME(word, linkage) && !(may_block && left_to_estack == GENERATION(linkage) + 1) -> l = linkage }
      :: atomic { (!stays || server_revoked) && !last -> l = 0 } /* it goes: no call for a window, evicted, revoked */
        polled = 0;
#if FENCE && !defined(BROKEN_NO_HEAVY_FENCE)
        if /* the fence */
        :: atomic { buffered -> word = buffer; buffered = 0; buffer = 0 }
        :: !buffered
        fi;
#endif
        last = 1;
#ifdef BROKEN_NO_LAST_LOOK
        goto gone;
#endif
        atomic {
          if
          :: FOR_ME(word, linkage) && !(may_block && left_to_estack == GENERATION(linkage) + 1) -> l = linkage
          :: else -> goto gone
          fi
        }
      fi;
      if
      :: atomic { may_block -> left_to_estack = GENERATION(l) + 1 }
#ifndef BROKEN_NOT_LEFT_TO_ESTACK
        atomic { wake_estack() }
#endif
      :: !may_block ->
        claim(l, mine);
        if
        :: mine -> serve(l, w)
        :: else
        fi
      fi;
      atomic { l = 0; w = 0; mine = 0 }
      if
      :: last
      :: !last -> goto end_scan
      fi;
    gone:
      atomic { hot = 0; l = 0; last = 0; stays = 0 }
    :: break
    od
  } unless { atomic { server_dead -> l = 0; w = 0; mine = 0; stays = 0; last = 0; polls = 0; left_to_estack = 0 } }
}
#endif

proctype estack() {
  byte l, w;
  bit mine;
  {
    skip;
  end_idle:
    associated;
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
      :: server_revoked -> goto detaching
#if LEAVES > 0
      :: leaves > 0 -> leaves--; goto detaching
#endif
      :: !server_revoked
      fi
    }
    w = word; /* T11 */
    atomic {
      if
      :: word == w -> w = w | PARKED; word = w
      :: else -> w = 0; l = 0; goto look
      fi
    }
    l = linkage;
    atomic {
      if
      :: FOR_ME(w, l) -> w = 0; l = 0; goto look
      :: else -> l = 0
      fi;
      if
      :: server_revoked -> w = 0; goto look
      :: else
      fi
    }
    atomic {
      if
      :: word == w -> asleep[ESTACK] = 1
      :: else
      fi;
      w = 0
    }
  end_parked:
    if
    :: atomic { !asleep[ESTACK] -> goto look }
#if STUCK /* else the poller serves or goes */
    :: atomic { hot && FOR_ME(word, linkage) -> asleep[ESTACK] = 0; goto look } /* H3 */
#endif
    fi;
  have:
    claim(l, mine);
    if
    :: mine -> serve(l, w)
    :: else
    fi;
    atomic { mine = 0; l = 0; w = 0; goto look }
  detaching: /* T14 */
    attached = 0;
    associated = 0;
#if FENCE && !defined(BROKEN_LEAVES_WITHOUT_HEAVY_FENCE)
    if /* the fence: a client that saw the poller's hint has made none */
    :: hot ->
      if
      :: atomic { buffered -> word = buffer; buffered = 0; buffer = 0 }
      :: !buffered
      fi
    :: !hot
    fi;
#endif
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
      :: mine -> serve(l, w)
      :: else
      fi
    :: else
    fi;
    atomic { mine = 0; l = 0; w = 0; in_use = 0; goto end_idle }
  } unless { atomic { server_dead -> l = 0; w = 0; mine = 0 } }
}

proctype clerk() {
  byte l, w;
  {
    skip;
  end_clerk:
    do /* T13 */
    :: atomic { bell -> bell = 0 }
      if
      :: associated || server_revoked
      :: atomic { !associated && !server_revoked -> l = linkage }
        atomic {
          w = word;
          if
          :: FOR_ME(w, l) -> l = 0; w = 1
          :: else -> l = 0; w = 0
          fi
        }
        if
        :: atomic { w == 1 && !associated && !in_use && !server_revoked -> in_use = 1; associated = 1 }
        :: w == 0 || associated || server_revoked
        fi
      fi;
      w = 0
    od
  } unless { atomic { server_dead -> l = 0; w = 0 } }
}

/* ---- the client ---- */

inline rouse() { /* T4: a system call, so the buffer has drained */
  atomic { !buffered -> may_sleep = 0; wake_estack() }
  if
  :: atomic { !attached -> w = 0 }
    bell = 1
  :: attached
  fi
}

/* A full fence, and the looks that count. */
inline look_again() {
  !buffered;
  if
  :: polled ->
    if
    :: attached
    :: !attached -> rouse()
    fi
  :: !polled -> rouse()
  fi
}

inline announce() { word = word | SLEEPS } /* T3's first half */

proctype client() {
  byte n, w, kind;
  bit may_sleep;
  {
    may_sleep = 1;
    do
    :: atomic {
        n < CALLS ->
        n++;
        w = 0;
        select(kind : FIRST_KIND .. KINDS);
#if BLOCKING > 0
        if
        :: may_block = 0
        :: may_block = 1
        fi;
#endif
        assert(executing == 0);
        argument = n
      }
      if /* step 4. The hint is looked at, and how it went the last times */
      :: atomic { polled && !buffered && !(may_block && kind != SYNCHRONOUS) -> w = 0 }
        atomic { !buffered -> buffer = WORD(CALLED, n); buffered = 1; may_sleep = 1 } /* T1 */
        if
#ifdef BROKEN_NO_SECOND_LOOK
        :: kind != SYNCHRONOUS -> skip
#else
#if FENCE || defined(BROKEN_NO_OWN_FENCE)
        :: atomic { kind != SYNCHRONOUS && polled -> w = 0 }
          if
          :: attached
          :: !attached -> look_again()
          fi
#else
        :: atomic { kind != SYNCHRONOUS && polled -> w = 0 }
          look_again() /* the hint says that nobody fences for us */
#endif
        :: atomic { kind != SYNCHRONOUS && !polled -> w = 0 } rouse()
#endif
        :: atomic { kind == SYNCHRONOUS && IS(CLIENT_SEES, RETURNED, n) -> goto take }
        :: atomic { kind == SYNCHRONOUS && !IS(CLIENT_SEES, RETURNED, n) -> w = 0 } rouse()
        fi
      :: atomic { !buffered -> w = word; word = WORD(CALLED, n) } /* T2 */
        if
        :: atomic { (w & PARKED) || may_sleep || !attached -> w = 0 } rouse()
        :: atomic { !(w & PARKED) && !may_sleep && attached -> w = 0 }
        fi
      fi;

      if
      :: atomic { kind == ONE_WAY -> must_execute[n] = 1; goto quarantine }
      :: kind == DROPPED -> goto abandon
      /* its lock is an atomic operation: the buffer drains */
      :: atomic { kind == WATCHED && !buffered -> watched = n; ready = 0 }
        changed = 1;
        if /* by choice it waits for the queue, finishes before, or drops the call */
        :: atomic { ready -> w = 0 }
        :: client_revoked
        :: skip
        :: atomic { watched = 0; ready = 0; goto abandon }
        fi;
        atomic { watched = 0; ready = 0 }
      :: kind == SYNCHRONOUS || kind == FINISHED
      fi;
      if /* what was left to a poller, and is not there yet: T4 after all */
      :: atomic { !may_sleep || IS(CLIENT_SEES, RETURNED, n) -> w = 0 }
      :: atomic { may_sleep && !IS(CLIENT_SEES, RETURNED, n) && !client_revoked -> w = 0 } rouse()
      :: client_revoked
      fi;

    wait:
      if
      :: atomic { IS(CLIENT_SEES, RETURNED, n) -> goto take }
      :: atomic { (client_revoked || (CLIENT_SEES & REVOKED)) && !IS(CLIENT_SEES, RETURNED, n) -> goto failed }
      :: atomic { !buffered && IS(word, CALLED, n) && !(word & REVOKED) -> announce(); w = word } /* T3 */
      fi;
      if
      :: atomic { client_revoked -> w = 0; if :: IS(word, RETURNED, n) -> goto take :: else -> goto failed fi }
      :: !client_revoked
      fi;
      atomic {
        if
        :: word == w -> asleep[CLIENT] = 1
        :: else
        fi;
        w = 0
      }
      atomic { !asleep[CLIENT] -> goto wait }

    abandon:
      atomic { /* T15 */
        !buffered;
        if
        :: IS(word, CALLED, n) -> word = WORD(ABANDONED, n) | (word & (PARKED | REVOKED))
        :: else
        fi
      }
    quarantine: /* T16; before it, T3 */
#ifdef BROKEN_ONE_WAY_REUSED
      atomic { !buffered -> goto next }
#endif
      if
      :: n == CALLS -> goto next
      :: atomic { n < CALLS && IS(CLIENT_SEES, RETURNED, n) -> goto next }
      :: atomic { n < CALLS && (client_revoked || (CLIENT_SEES & REVOKED)) -> goto failed }
      :: atomic {
          n < CALLS && !buffered && (IS(word, CALLED, n) || IS(word, ABANDONED, n)) && !(word & REVOKED) ->
          announce();
          w = word
        }
        if
        :: client_revoked -> goto failed
        :: !client_revoked
        fi;
        atomic {
          if
          :: word == w -> asleep[CLIENT] = 1
          :: else
          fi;
          w = 0
        }
        atomic { !asleep[CLIENT] -> goto quarantine }
      fi;

    take:
      assert(result == n || refused == n);
    next:
      skip
    :: atomic { n == CALLS -> break }
    od;
  failed:
    client_done = 1
  } unless { atomic { client_dead -> n = 0; w = 0; kind = 0; may_sleep = 0 } }
}

proctype queue() { /* CompletionQueue's thread */
  byte g, w;
  {
    skip;
  end_idle:
    atomic { changed -> changed = 0 }
  look:
    atomic { /* under the lock */
      g = watched;
      if
      :: g == 0 || ready -> g = 0; goto end_idle
      :: else
      fi
    }
    atomic {
      w = word;
      if
      :: !IS(w, CALLED, g) || (w & REVOKED) || client_revoked -> w = 0
      :: else -> w = 1
      fi
    }
    if
    :: atomic { w == 0 -> if :: g != 0 && g == watched -> ready = 1 :: else fi; g = 0; goto end_idle }
    :: w == 1
    fi;
    atomic { /* T3's first half, by this thread */
      if
      :: IS(word, CALLED, g) && !(word & REVOKED) -> announce(); w = word
      :: else -> w = 0; goto look
      fi
    }
#ifndef BROKEN_QUEUE_FLAG_LOOKED_AT_EARLY
    if
    :: atomic { client_revoked -> w = 0; goto look }
    :: !client_revoked
    fi;
#endif
    atomic { /* futex_waitv */
      if
      :: word == w && !changed -> asleep[QUEUE] = 1
      :: else
      fi;
      w = 0
    }
  end_asleep: /* a call that was forgotten may leave it here: the sleep is bounded */
    atomic { !asleep[QUEUE] || changed -> asleep[QUEUE] = 0; changed = 0; goto look }
  } unless { atomic { client_dead -> g = 0; w = 0 } }
}

/* ---- everything around them ---- */

proctype store_buffer() {
end_buffer:
  do
  :: atomic { buffered -> word = buffer; buffered = 0; buffer = 0 }
  od
}

#if FATE != 0
proctype client_watcher() { /* T17 */
end_watch:
  server_dead || hung_up;
  client_revoked = 1;
  word = word | REVOKED;
#ifdef BROKEN_QUEUE_NOT_WOKEN
  atomic { asleep[CLIENT] = 0 }
#else
  atomic { wake_caller() }
#endif
}

proctype server_watcher() { /* T18 */
  {
    skip;
  end_watch:
    (client_dead && !buffered) || hung_up;
    server_revoked = 1;
    word = word | REVOKED;
    word = word & ~PARKED;
    atomic { wake_estack() }
    !in_use && !hot /* every E-stack and every poller lets go */
  } unless { server_dead }
}

proctype fate() {
#if FATE == 1
  atomic {
    server_dead = 1;
    asleep[ESTACK] = 0;
    executing = 0;
    linkage = 0;
    associated = 0;
    in_use = 0;
    hot = 0;
    bell = 0
  }
#elif FATE == 2
  atomic { client_dead = 1; asleep[CLIENT] = 0; asleep[QUEUE] = 0; watched = 0; changed = 0 }
#else
  hung_up = 1
#endif
}
#endif

proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  assert(client_done || client_dead);
  assert(server_dead || !IS_CLAIMED(linkage));
  assert(executing == 0);
  assert(!asleep[CLIENT]);
  for (i : 1 .. CALLS) {
    assert(FATE != 0 || !must_execute[i] || executed[i])
  }
}

init {
  atomic {
    run client();
#if KINDS > 3
    run queue();
#endif
    run estack();
    run clerk();
#if POLLS > 0
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
