/*
 * The sleeping word (shim::SleepingWord), and two kinds of threads that sleep on one, for spin. docs/MODELS.md has the
 * table; P1 .. P5 are its names.
 *
 * The poller: A-stacks that are offered to it, its parking, and the end of the server at any step. ESTACKS E-stacks
 * serve an A-stack each and offer it OFFERS times, whenever nobody polls it. The poller's thread starts with the first
 * offer. It polls what it has taken for as long as it likes, lets all go and parks; there is no clock. What the poller
 * and its callers do with a call word is started.pml's.
 *
 * TAKERS > 0, in its place: that many threads wait for news, which ESTACKS others bring, OFFERS times each. Each raise
 * wakes one. The first taker may give up when it wakes.
 *
 * With STOP the server ends at any moment: it stops the word and waits for the threads.
 *
 * What is checked: no invalid end state; and when nothing can move any more, the server that ends has ended, and the
 * threads with it; no A-stack passes for polled that nobody polls, and no news are left while a taker sleeps.
 */

#ifndef ESTACKS
#define ESTACKS 2
#endif
#ifndef OFFERS
#define OFFERS 1
#endif
#ifndef TAKERS
#define TAKERS 0
#endif
#ifndef STOP
#define STOP 0
#endif

/* ---- The word. Who sleeps on it has `seen` and `seen_stop`, what it has seen of it. ---- */

byte count; /* how often it was raised */
bit stop;   /* a bit of the same word */
bit asleep[4];

/* P2 */
inline look() { d_step { seen = count; seen_stop = stop } }
#define CHANGED (count != seen || stop != seen_stop)

inline wake_one() {
  atomic {
    if
    :: asleep[0] -> asleep[0] = 0
    :: asleep[1] -> asleep[1] = 0
    :: asleep[2] -> asleep[2] = 0
    :: asleep[3] -> asleep[3] = 0
    :: else
    fi
  }
}
inline wake_all() { d_step { asleep[0] = 0; asleep[1] = 0; asleep[2] = 0; asleep[3] = 0 } }

/* P1. The news lie there by now. */
inline raise() {
#ifdef BROKEN_WAKES_FIRST
  wake_one();
  count++
#else
  count++;
  wake_one()
#endif
}

/* P5. */
inline end_all() {
  stop = 1;
#ifdef BROKEN_STOP_WAKES_ONE
  wake_one()
#else
  wake_all()
#endif
}

/* P3. The futex compares the word with what was seen of it, without the stop. */
#if defined(BROKEN_STOP_BESIDE_THE_WORD)
#define SAME (count == seen)
#elif defined(BROKEN_SLEEPS_ON_A_STOP)
#define SAME (!CHANGED)
#else
#define SAME (count == seen && !stop)
#endif
inline sleep_unless_changed(me) {
  atomic {
    if
    :: SAME -> asleep[me] = 1
    :: else
    fi
  }
end_parked:
  !asleep[me]
}

/* ---- The poller ---- */

bit running, ended, joined;
bit lock;
bit polled[ESTACKS + 1]; /* the E-stack's word for it: offered or hot */
bit offered[ESTACKS + 1];
bit hot[ESTACKS + 1]; /* the poller's own */

inline acquire() { atomic { !lock -> lock = 1 } }
inline release() { lock = 0 }

#if ESTACKS == 1
#define NONE_HOT (!hot[1])
#elif ESTACKS == 2
#define NONE_HOT (!hot[1] && !hot[2])
#else
#define NONE_HOT (!hot[1] && !hot[2] && !hot[3])
#endif

/* What is offered later has changed the word since, and is seen by whoever is to sleep. */
inline take_offers() {
#ifndef BROKEN_LOOKS_LAST
  look();
#endif
  acquire();
  for (i : 1 .. ESTACKS) {
    if
    :: offered[i] -> offered[i] = 0; hot[i] = 1
    :: else
    fi
  }
  release();
#ifdef BROKEN_LOOKS_LAST
  look();
#endif
}

/* P4. The last look at the call word, and who may offer it again. */
inline let_go() {
  for (i : 1 .. ESTACKS) {
    if
    :: hot[i] -> hot[i] = 0; polled[i] = 0
    :: else
    fi
  }
}

proctype poller() {
  byte seen, i;
  bit seen_stop;
  do
  :: stop -> break
  :: !stop ->
    take_offers();
    if
    :: NONE_HOT -> sleep_unless_changed(0)
    :: else -> /* a stint */
      do
      :: CHANGED -> take_offers()
      :: break
      od;
      let_go()
    fi
  od;
  ended = 1
}

proctype estack(byte a) {
  byte n;
  bit mine;
  do
  :: n == OFFERS -> break
  :: n < OFFERS ->
    n++;
    atomic { mine = !polled[a]; polled[a] = 1 }
    if
    :: !mine
    :: mine ->
      acquire();
      if
      :: stop -> polled[a] = 0
      :: !stop ->
        if
        :: !running -> running = 1; run poller()
        :: else
        fi;
        offered[a] = 1;
        raise()
      fi;
      release()
    fi
  od
}

/* ---- Threads that wait for news ---- */

byte there, here;
bit gave_up;

proctype taker(byte me) {
  byte seen;
  bit seen_stop, took;
  here++;
  do
  :: stop -> break
  :: !stop ->
#ifndef BROKEN_LOOKS_LAST
    look();
#endif
    atomic {
      took = there > 0;
      if
      :: took -> there--
      :: else
      fi
    }
    if
    :: took
    :: !took ->
#ifdef BROKEN_LOOKS_LAST
      look();
#endif
      sleep_unless_changed(me);
      if
      :: true
      :: me == 1 ->
        gave_up = 1;
#ifndef BROKEN_GIVES_UP_AND_RAISES_NOTHING
        if
        :: there > 0 -> raise()
        :: else
        fi;
#endif
        break
      fi
    fi
  od;
  here--
}

proctype bringer() {
  byte n;
  do
  :: n == OFFERS -> break
  :: n < OFFERS ->
    n++;
    there++;
    raise()
  od
}

/* ---- The end ---- */

proctype server() {
  acquire();
  end_all();
  release();
#if TAKERS
  here == 0;
#else
  if
  :: running -> ended /* waits for the thread */
  :: !running
  fi;
#endif
  joined = 1
}

proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  assert(joined == STOP);
#if TAKERS
  assert(!STOP || here == 0);
  assert(STOP || there == 0 || (TAKERS == 1 && gave_up));
#else
  assert(!STOP || ended == running);
  for (i : 1 .. ESTACKS) {
    assert(STOP || !polled[i])
  }
#endif
}

init {
  byte i;
  atomic {
#if TAKERS
    for (i : 1 .. TAKERS) {
      run taker(i)
    }
#endif
    for (i : 1 .. ESTACKS) {
#if TAKERS
      run bringer()
#else
      run estack(i)
#endif
    }
#if STOP
    run server();
#endif
    run judge()
  }
}
