/*
 * The poller's sleep, for spin: A-stacks that are offered to it, its parking, and the end of the server at any step.
 * docs/MODELS.md has the table; P1 .. P5 are its names.
 *
 * ESTACKS E-stacks serve an A-stack each and offer it OFFERS times, whenever nobody polls it. The poller's thread
 * starts with the first offer. It polls what it has taken for as long as it likes, lets all go and parks; there is no
 * clock. With STOP the server ends at any moment: it stops the poller and waits for its thread. What the poller and its
 * callers do with a call word is started.pml's.
 *
 * What is checked: no invalid end state; and when nothing can move any more, the server that ends has ended, and its
 * poller's thread with it; and no A-stack passes for polled that nobody polls.
 */

#ifndef ESTACKS
#define ESTACKS 2
#endif
#ifndef OFFERS
#define OFFERS 1
#endif
#ifndef STOP
#define STOP 0
#endif

byte count; /* the futex word: how often the poller was told to look */
bit stop, running, ended, asleep, joined;
bit lock;
bit polled[ESTACKS + 1]; /* the E-stack's word for it: offered or hot */
bit offered[ESTACKS + 1];
bit hot[ESTACKS + 1]; /* the poller's own */

inline acquire() { atomic { !lock -> lock = 1 } }
inline release() { lock = 0 }
inline wake() { asleep = 0 }

#if ESTACKS == 1
#define NONE_HOT (!hot[1])
#elif ESTACKS == 2
#define NONE_HOT (!hot[1] && !hot[2])
#else
#define NONE_HOT (!hot[1] && !hot[2] && !hot[3])
#endif

/* P2. What is offered later has raised the count since, and is seen by whoever is to sleep. */
inline take_offers() {
#ifndef BROKEN_COUNT_READ_LAST
  seen = count;
#endif
  acquire();
  for (i : 1 .. ESTACKS) {
    if
    :: offered[i] -> offered[i] = 0; hot[i] = 1
    :: else
    fi
  }
  release();
#ifdef BROKEN_COUNT_READ_LAST
  seen = count;
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
  do
  :: stop -> break
  :: !stop ->
    take_offers();
    if
    :: NONE_HOT -> /* P3 */
#ifndef BROKEN_STOP_COUNTED_AND_NOT_SEEN
      if
      :: stop -> goto over
      :: !stop
      fi;
#endif
      atomic { /* the futex */
        if
        :: count == seen -> asleep = 1
        :: else
        fi
      }
end_parked:
      !asleep
    :: else -> /* a stint */
      do
      :: count != seen -> take_offers()
      :: break
      od;
      let_go()
    fi
  od;
over:
  ended = 1
}

proctype estack(byte a) {
  byte n;
  bit mine;
  do
  :: n == OFFERS -> break
  :: n < OFFERS ->
    n++;
    atomic { mine = !polled[a]; polled[a] = 1 } /* P1 */
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
#ifdef BROKEN_WAKES_FIRST
        wake();
        count++;
#else
        count++;
        wake();
#endif
      fi;
      release()
    fi
  od
}

proctype server() {
  acquire(); /* P5 */
  stop = 1;
#ifndef BROKEN_STOP_NOT_COUNTED
  count++;
#endif
  wake();
  release();
  if
  :: running -> ended /* waits for the thread */
  :: !running
  fi;
  joined = 1
}

proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  assert(joined == STOP);
  assert(!STOP || ended == running);
  for (i : 1 .. ESTACKS) {
    assert(STOP || !polled[i])
  }
}

init {
  atomic {
    run estack(1);
#if ESTACKS > 1
    run estack(2);
#endif
#if ESTACKS > 2
    run estack(3);
#endif
#if STOP
    run server();
#endif
    run judge()
  }
}
