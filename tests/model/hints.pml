/*
 * What caller and server tell each other by hints, for spin: `polled` and `attached` in the A-stack's slot, the
 * caller's processor and YIELDS in the call word. docs/MODELS.md has the table; H1 .. H14 are its names.
 *
 * One caller makes CALLS calls on one A-stack, on either of two processors. By the hints it exchanges, lends, yields or
 * sleeps. The server has an E-stack, which binds itself to processors and leaves LEAVES times by itself, a clerk, and a
 * poller, which begins to poll the A-stack STINTS times, on either processor, and goes when it likes or stays for ever.
 * With ONE_WAY a call may be one for which nobody waits. There is no clock: an exchange and a yield may end at any
 * moment, and whoever has lost trust may find it again at any moment.
 *
 * LIE=1: the server's hints change to anything at any moment. LIE=2: another client, whose A-stack the same poller has,
 * calls without end and from any processor by its word. STUCK=1: its procedure may keep the poller for ever.
 *
 * What is checked: without a liar no sleep of a caller ends by itself, so a wake-up that is lost is an invalid end
 * state; no run goes on for ever. With one, where that cannot hold, each call ends if no thread is kept from running
 * for ever (weak fairness): kind `fair`. Always: no generation is executed twice, and results are those of the call.
 */

#ifndef CALLS
#define CALLS 2
#endif
#ifndef STINTS
#define STINTS 1
#endif
#ifndef TURNS
#define TURNS 0 /* how often the poller offers its processor to others within its stints, and says so */
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef GUESTS
#define GUESTS 0 /* the poller may stay where callers are */
#endif
#ifndef ONE_WAY
#define ONE_WAY 0 /* 1: calls may be one-way, 2: they are */
#endif
#ifndef HOT
#define HOT 0 /* the A-stack has an E-stack, which has offered it, before the first call that is modelled */
#endif
#ifndef LIE
#define LIE 0
#endif
#ifndef STUCK
#define STUCK 0
#endif
#ifndef BOUNDED
#define BOUNDED 1 /* the E-stack of a polled A-stack sleeps for a while only: H3 */
#endif

#include "word.pml"

/* In the region. */
byte word = WORD(RETURNED, 0);
byte said; /* stands in the word beside CALLED(n), stored with it: the caller's processor, and YIELDS */
#define YIELDS 2
byte result;
byte polled;
#define POLLED(processor, stint, turn) (1 + (processor) + 2 * (stint) + 4 * (turn))
#define GUEST 8 /* added to it: H14 */
#define PROCESSOR(hint) (((hint) - 1) & 1)
#define IS_GUEST(hint) ((((hint) - 1) & GUEST) != 0)
#define STINT(hint) ((((hint) - 1) >> 1) & 1)
byte attached;
#define NOBODY 0
#define ANYWHERE 1
#define BESIDE(processor) (2 + (processor))

/* The kernel. */
#define CLIENT 0
#define ESTACK 1
bit asleep[2];
bit bell;

/* Private to the server. */
byte linkage = FREE(0);
bit associated;
bit in_use;
bit hot;     /* offered to the poller, or polled: the truth behind `polled` */
bit offered;
bit remembered; /* the poller may take it back without an offer */
#if LEAVES > 0
byte leaves = LEAVES;
#endif

/* The other client. */
bit rung;
bit rung_from;

/* Ghosts, for the assertions only. */
byte executing;
bit executed[CALLS + 1];
bit owed; /* a one-way call has been rung and not executed */
bit client_done;

#ifdef FAIR
ltl ended { <>(client_done && !owed) }
#endif

inline wake(who) { asleep[who] = 0 }

/* ---- the server ---- */

inline claim(l, mine) { /* T5 */
  atomic {
    if
    :: linkage == l -> linkage = CLAIMED(GENERATION(l) + 1); mine = 1
    :: else -> mine = 0
    fi
  }
}

/* Leaves in `s` what the caller says. A wake-up is one step with the exchange before it: started.pml has them apart. */
inline serve(l, s) {
  atomic {
    assert(IS(word, CALLED, GENERATION(l) + 1));
    s = said;
    executing++;
    assert(executing == 1);
    assert(!executed[GENERATION(l) + 1]);
    executed[GENERATION(l) + 1] = 1;
    owed = 0
  }
  atomic {
    executing--;
    result = GENERATION(l) + 1;
    linkage = FREE(GENERATION(l) + 1) /* T8 */
  }
  atomic { /* T9 */
    if
    :: word & SLEEPS -> wake(CLIENT)
    :: else
    fi;
    if
    :: word & PARKED -> wake(ESTACK)
    :: else
    fi;
    word = WORD(RETURNED, GENERATION(l) + 1)
  }
}

#if STINTS > 0
proctype poller() {
  byte l, s, stints = STINTS, takes = STINTS; /* how often it takes the A-stack back */
#if TURNS > 0
  byte turns = TURNS;
#endif
  bit mine, stint, turn, seat, stays, others_turn;
end_parked:
  atomic {
    if
    :: offered -> offered = 0
    :: remembered && takes > 0 -> takes--; remembered = 0; hot = 1 /* another A-stack has been offered */
    fi
  }
  if
  :: goto let_go /* its back-off has begun, or callers sit on all processors */
  :: atomic { stints > 0 -> stints--; if :: stays = 0 :: stays = 1 fi }
    atomic { /* with other A-stacks it may be in the same stint as before */
      if
      :: stint = 1 - stint
      :: skip
      fi;
      if
      :: seat = 0
      :: seat = 1
      fi;
      polled = POLLED(seat, stint, turn); /* H4 */
#if GUESTS
      if
      :: skip
      :: polled = polled + GUEST /* callers sit on all processors: H14 */
      fi
#endif
    }
  fi;
end_scan:
  if /* H12: each of its A-stacks in turn */
#ifdef BROKEN_ONE_CLIENT_FIRST
  :: atomic { FOR_ME(word, linkage) && !rung -> l = linkage }
#else
  :: atomic { FOR_ME(word, linkage) && !(rung && others_turn) -> l = linkage }
#endif
    claim(l, mine);
    others_turn = 1;
    if
    :: mine -> serve(l, s)
      if /* H5: the caller says that it is where we are */
      :: (s & 1) == seat && !IS_GUEST(polled) -> goto aside
      :: (s & 1) == seat && IS_GUEST(polled) /* before it yields: H14 */
      :: else
      fi
    :: else
    fi
#if LIE == 2
#ifdef BROKEN_ONE_CLIENT_FIRST
  :: atomic { rung -> rung = 0; others_turn = 0; s = rung_from }
#else
  :: atomic { rung && !(FOR_ME(word, linkage) && !others_turn) -> rung = 0; others_turn = 0; s = rung_from }
#endif
    if
    :: s == seat -> seat = 1 - seat; polled = POLLED(seat, stint, turn) /* H5 */
    :: skip /* it has stepped aside only just now: the other A-stack goes, and comes again */
    :: s != seat
#if STUCK
    :: atomic { skip } goto end_stuck
#endif
    fi
#endif
#if TURNS > 0
  :: atomic { turns > 0 -> turns--; turn = 1 - turn; polled = POLLED(seat, stint, turn) } /* H4 */
#endif
  :: !stays -> goto let_go
  fi;
  atomic { l = 0; s = 0; mine = 0; goto end_scan }
aside:
  atomic { l = 0; s = 0; mine = 0 }
  if
  :: atomic { seat = 1 - seat; polled = POLLED(seat, stint, turn); goto end_scan }
#if GUESTS
  :: atomic { polled = POLLED(seat, stint, turn) + GUEST; goto end_scan } /* H14 */
#endif
#ifdef BROKEN_HINT_STAYS_ASIDE
  :: goto gone
#else
  :: goto let_go
#endif
  fi;
let_go: /* H6; P4 */
#ifdef BROKEN_LOOKS_FIRST
  atomic {
    if
    :: FOR_ME(word, linkage) -> l = linkage; goto last
    :: else
    fi
  }
  polled = 0;
  goto gone;
#else
  polled = 0;
  atomic {
    if
    :: FOR_ME(word, linkage) -> l = linkage
    :: else -> goto gone
    fi
  }
#endif
last:
  claim(l, mine);
  if
  :: mine -> serve(l, s)
  :: else
  fi;
#ifdef BROKEN_LOOKS_FIRST
  polled = 0;
#endif
gone:
  atomic {
    hot = 0;
    if
    :: stints > 0 && takes > 0 -> remembered = 1
    :: skip
    fi;
    l = 0; s = 0; mine = 0; stays = 0; others_turn = 0; goto end_parked
  }
end_stuck:
  false
}
#endif

proctype estack() {
  byte l, w, s, bound; /* 0, or 1 + the processor that it is bound to */
  bit mine, briefly;
end_idle:
  associated;
  attached = ANYWHERE; /* H1 */
look:
  l = linkage;
  atomic {
    w = word;
    if
    :: FOR_ME(w, l) -> w = 0; goto have
    :: else -> l = 0; w = 0
    fi
#if LEAVES > 0
    if
    :: leaves > 0 -> leaves--; goto detaching
    :: skip
    fi
#endif
  }
#ifndef BROKEN_PARKS_FOR_GOOD
  atomic { /* H3 */
#ifdef BROKEN_TAKEN_BACK_UNSEEN
    briefly = hot && BOUNDED
#else
    if
    :: remembered -> remembered = 0 /* for so long without a call */
    :: skip
    fi;
    briefly = (hot || remembered) && BOUNDED
#endif
  }
#endif
#if LIE != 1
  assert(attached == (bound -> BESIDE(bound - 1) : ANYWHERE));
#endif
  w = word; /* T11 */
  atomic {
    if
    :: word == w -> w = w | PARKED; word = w
    :: else -> w = 0; briefly = 0; goto look
    fi
  }
  l = linkage;
  atomic {
    if
    :: FOR_ME(w, l) -> w = 0; l = 0; briefly = 0; goto look
    :: else -> l = 0
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
  :: atomic { !asleep[ESTACK] -> briefly = 0; goto look }
  :: atomic { briefly && FOR_ME(word, linkage) -> wake(ESTACK); briefly = 0; goto look }
  :: atomic { briefly && !hot -> wake(ESTACK); remembered = 0; briefly = 0; goto look }
     /* any other end changes nothing */
  fi;
have:
  claim(l, mine);
  if
  :: mine -> serve(l, s)
  :: else -> atomic { l = 0; goto look }
  fi;
#if STINTS > 0
  if /* P1 */
  :: atomic { !hot -> hot = 1; remembered = 0 } offered = 1
  :: skip
  fi;
#endif
  if /* H2. To hand the processor over before it parks is to look again. */
  :: polled != 0
  :: atomic { polled == 0 && !(s & YIELDS) && bound == 0 }
  :: atomic { polled == 0 && !(s & YIELDS) && bound != 0 -> bound = 0 }
    attached = ANYWHERE /* H1 */
  :: polled == 0 && (s & YIELDS) /* not each time, or there already */
  :: atomic { polled == 0 && (s & YIELDS) && bound != 1 + (s & 1) -> bound = 1 + (s & 1) }
#ifndef BROKEN_MOVES_UNSAID
    attached = BESIDE(bound - 1) /* H1; then it moves */
#endif
  fi;
  atomic { mine = 0; l = 0; s = 0; goto look }
detaching: /* T14 */
  bound = 0;
  attached = NOBODY;
  associated = 0;
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
    :: mine -> serve(l, s)
    :: else
    fi
  :: else
  fi;
  atomic { mine = 0; l = 0; w = 0; s = 0; in_use = 0; goto end_idle }
}

proctype clerk() {
  byte l, w;
end_clerk:
  do /* T13 */
  :: atomic { bell -> bell = 0 }
    if
    :: associated
    :: atomic { !associated -> l = linkage }
      atomic {
        w = word;
        if
        :: FOR_ME(w, l) -> l = 0; w = 1
        :: else -> l = 0; w = 0
        fi
      }
      if
      :: atomic { w == 1 && !associated && !in_use -> in_use = 1; associated = 1 }
      :: w == 0 || associated
      fi
    fi;
    w = 0
  od
}

/* ---- the client ---- */

inline rouse() { /* T4 */
  atomic {
    may_sleep = 0;
#ifndef BROKEN_TRUSTS_ON
    trusted = 0;
#endif
    wake(ESTACK)
  }
  if
  :: atomic { attached == NOBODY -> bell = 1 }
  :: attached != NOBODY
  fi
}

/* T3: announces the sleep, compares, sleeps. With a liar each sleep ends by itself: H11. */
inline sleep(again) {
  atomic {
    if
    :: IS(word, CALLED, n) -> word = word | SLEEPS; w = word
    :: else -> goto again
    fi
  }
  atomic {
    if
    :: word == w -> asleep[CLIENT] = 1
    :: else
    fi;
    w = 0
  }
  if
  :: atomic { !asleep[CLIENT] -> goto again }
#if LIE == 1
  :: atomic { asleep[CLIENT] -> wake(CLIENT) }
#ifndef BROKEN_NOT_OVERRULED
    atomic { wake(ESTACK) } /* H11 */
    bell = 1;
#endif
    goto again
#endif
  fi
}

/* T3, beside a guest. With a liar this sleep ends by itself, too. */
inline lend() {
  atomic {
    if
    :: IS(word, CALLED, n) -> word = word | SLEEPS; w = word
    :: else -> goto lending
    fi
  }
  atomic {
    if
    :: word == w -> asleep[CLIENT] = 1
    :: else
    fi;
    w = 0
  }
  if
  :: atomic { !asleep[CLIENT] -> goto lending }
#if LIE != 0 && !defined(BROKEN_LENDS_FOR_GOOD)
  :: atomic { asleep[CLIENT] -> wake(CLIENT) } goto missing
#endif
  fi
}

proctype client() {
  byte n, w;
  byte hint, beside; /* `polled` and `attached` as they were looked at */
  byte trusted;      /* the hint that was chosen, 0 none */
  byte missed;       /* 0, or 1 + the stint that has been believed in vain */
  bit believed;      /* the stint of `trusted`, and after it */
  bit here, may_yield, may_sleep, one_way, lends;
  may_sleep = 1;
  do
  :: atomic {
      n < CALLS -> n++;
      assert(executing == 0);
      if
      :: here = 0
      :: here = 1
      fi;
#if LIE != 2 /* there the E-stack has no time to follow */
      if
      :: may_yield = 0
      :: may_yield = 1
      fi;
#endif
#if ONE_WAY == 1
      if
      :: one_way = 0
      :: one_way = 1
      fi
#elif ONE_WAY == 2
      one_way = 1
#endif
    }
    if
    :: atomic { trusted != 0 && polled == trusted -> assert(may_sleep) } /* H7 */
    :: atomic {
        trusted == 0 || polled != trusted -> hint = polled;
        if /* H8 */
        :: hint != 0 && PROCESSOR(hint) != here ->
          trusted = hint;
          believed = STINT(hint);
#ifndef BROKEN_MAY_SLEEP_UNNOTED
          may_sleep = 1
#endif
        :: hint != 0 && PROCESSOR(hint) == here && IS_GUEST(hint) && !one_way ->
          trusted = 0;
          believed = STINT(hint);
          lends = 1;
          may_sleep = 1
        :: hint == 0 || PROCESSOR(hint) == here || missed == 1 + STINT(hint) -> trusted = 0
        fi;
        hint = 0
      }
      if
      :: trusted != 0
      :: atomic { lends -> lends = 0; word = WORD(CALLED, n); said = here } /* H13; T1 */
#ifdef BROKEN_LENDS_UNSEEN
        goto lending;
#else
        if /* the second look */
        :: polled != 0 -> goto lending
        :: polled == 0 -> goto missing
        fi;
#endif
      :: atomic { trusted == 0 && !lends -> beside = attached }
        atomic { /* T2 */
          w = word;
          word = WORD(CALLED, n);
          said = (may_yield && !one_way -> here | YIELDS : here);
          owed = one_way
        }
#ifdef BROKEN_ATTACHED_BEFORE_THE_RING
        if
        :: (w & PARKED) || may_sleep || beside == NOBODY -> w = 0; rouse()
        :: !(w & PARKED) && !may_sleep && beside != NOBODY
        fi;
#else
        if
        :: (w & PARKED) || may_sleep || attached == NOBODY -> w = 0; rouse()
        :: !(w & PARKED) && !may_sleep && attached != NOBODY
        fi;
#endif
        w = 0;
        if
        :: one_way -> goto sent
        :: !one_way && may_yield && beside == BESIDE(here) -> goto yielding
        :: !one_way && !(may_yield && beside == BESIDE(here)) -> goto sleeping
        fi
      fi
    fi;

    atomic { word = WORD(CALLED, n); said = here; owed = one_way } /* T1 */
    if
    :: one_way ->
      if /* the second look; the fences are started.pml's */
#ifdef BROKEN_LEFT_TO_A_POLLER_ALONE
      :: polled != 0 -> goto sent
#else
      :: polled != 0 ->
        if /* the poller may be stuck */
        :: attached != NOBODY -> goto sent
        :: attached == NOBODY
        fi
#endif
      :: polled == 0
      fi;
      rouse();
      goto sent
    :: !one_way
    fi;
    if
    :: IS(word, RETURNED, n) -> goto taken
#ifndef BROKEN_EXCHANGES_FOR_GOOD
    :: !IS(word, RETURNED, n)
#endif
    fi;
  missing:
    atomic { trusted = 0; missed = 1 + believed } /* H9 */
    if
    :: may_sleep || attached == NOBODY -> rouse()
    :: !may_sleep && attached != NOBODY
    fi;
    goto sleeping;

  lending: /* H13 */
    if
    :: IS(word, RETURNED, n) -> goto taken
    :: !IS(word, RETURNED, n) -> lend()
    fi;
    goto lending;

  yielding: /* H10 */
    if
    :: IS(word, RETURNED, n)
#ifndef BROKEN_YIELDS_FOR_GOOD
    :: !IS(word, RETURNED, n)
#endif
    fi;
  sleeping:
    if
    :: IS(word, RETURNED, n) -> goto taken
    :: !IS(word, RETURNED, n) -> sleep(sleeping)
    fi;

  sent: /* T16 before the next call on it */
    if
    :: n == CALLS -> goto next
    :: n < CALLS && IS(word, RETURNED, n) -> goto taken
    :: n < CALLS && !IS(word, RETURNED, n) -> sleep(sent)
    fi;

  taken:
    assert(result == n);
  next:
    atomic { beside = 0; w = 0; one_way = 0; may_yield = 0 }
  :: atomic { n == CALLS -> break }
  od;
  client_done = 1
}

#if LIE == 1
proctype liar() { /* as the server, or as whoever else has the region */
  do
  :: polled = 0
  :: polled = POLLED(0, 0, 0)
  :: polled = POLLED(1, 0, 0)
  :: polled = POLLED(1, 1, 0)
#if GUESTS
  :: polled = POLLED(0, 1, 0) + GUEST
  :: polled = POLLED(1, 0, 0) + GUEST
#endif
  :: attached = NOBODY
  :: attached = ANYWHERE
  :: attached = BESIDE(0)
  :: attached = BESIDE(1)
  od
}
#elif LIE == 2
proctype liar() {
  do
  :: atomic { rung = 1; rung_from = 0 }
#if !STUCK /* there the poller has no time to step aside */
  :: atomic { rung = 1; rung_from = 1 }
#endif
  od
}
#endif

#ifndef FAIR
proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  assert(client_done && !owed);
  assert(executing == 0 && !IS_CLAIMED(linkage));
  assert(!asleep[CLIENT]);
  assert(!FOR_ME(word, linkage));
  assert(hot || !polled);
  for (i : 1 .. CALLS) {
    assert(executed[i])
  }
}
#endif

init {
  atomic {
#if HOT
    associated = 1;
    in_use = 1;
    hot = 1;
    offered = 1;
#endif
    run client();
    run estack();
#if !HOT || LEAVES > 0
    run clerk();
#endif
#if STINTS > 0
    run poller();
#endif
#if LIE != 0
    run liar();
#endif
#ifndef FAIR
    run judge()
#endif
  }
}
