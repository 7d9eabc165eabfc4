/*
 * The gates where nobody sleeps on the word, for spin: the trap (docs/TRAP.md), where T1 is followed by a system call
 * that one thread of the server hears of, and with GATE_NONE calls inside one thread.
 *
 * The client makes CALLS calls. SIGNALS signals come at any time. One that comes before the trap has been read
 * interrupts it, and the client traps again. One that comes afterwards does not (WAIT_KILLABLE_RECV); with KERNEL_FAULT
 * it does all the same, as in kernels before 6.17. The server's listener thread reads a trap, checks the registers, and
 * enters the common call path T5 to T9. FATE chooses what goes wrong, at any step.
 *
 * What is checked: no generation is executed twice; without a FATE every call returns its own result; with one, every
 * call ends and the listener's thread ends with its client and with its binding; no run goes on for ever.
 */

#ifndef CALLS
#define CALLS 2
#endif
#ifndef SIGNALS
#define SIGNALS 2
#endif
#ifndef KERNEL_FAULT
#define KERNEL_FAULT 0
#endif
#ifndef FATE
#define FATE 0 /* 0 nothing, 1 the server dies, 2 the client dies, 3 the server ends the binding */
#endif

#include "word.pml"

byte word = WORD(RETURNED, 0);
byte argument, result;
byte refused;
bit buffered; /* the client's plain store */
byte buffer;

/* The kernel's notification: the last trap of the client. */
#define NONE 0
#define TRAPPED 1
#define READ 2
#define ANSWERED 3
mtype:what = { waiting, interrupted, answered, no_listener };
byte state = NONE;
byte id;       /* of the last trap; a server that answers another one's is told that it is gone */
byte number; /* the generation in its registers */
bit listening = 1;

byte linkage = FREE(0);
bit server_revoked, woken; /* woken: the listener's eventfd */
bit server_dead, client_dead;
bit listener_ended;

byte executing;
bit executed[CALLS + 1];
bit returned[CALLS + 1];
bit client_done;

inline execute(g) {
  executing++;
  assert(executing == 1);
  assert(!executed[g]);
  executed[g] = 1;
  assert(argument == g)
}

/* Steps a to g, by whoever executes the call: `l` is the linkage as it was seen. */
inline serve(l, w, mine) {
#ifndef BROKEN_TRUST_REGISTERS
  l = linkage;
  atomic {
    w = word;
    if
    :: FOR_ME(w, l) -> mine = 1
    :: else -> mine = 0
    fi
  }
#else
  atomic { l = FREE(g - 1); mine = 1 }
#endif
  if
  :: !mine
  :: mine ->
    atomic { /* T5 */
      if
#ifdef BROKEN_TRUST_REGISTERS
      :: linkage = CLAIMED(GENERATION(l) + 1)
#else
      :: linkage == l -> linkage = CLAIMED(GENERATION(l) + 1)
      :: else -> mine = 0
#endif
      fi
    }
    if
    :: !mine
    :: mine ->
      atomic {
        if
        :: server_revoked -> refused = GENERATION(l) + 1
        :: !server_revoked -> execute(GENERATION(l) + 1)
        fi
      }
      atomic {
        if
        :: refused != GENERATION(l) + 1 ->
          assert(argument == GENERATION(l) + 1); result = GENERATION(l) + 1; executing--
        :: else
        fi;
        linkage = FREE(GENERATION(l) + 1) /* T8 */
      }
      atomic { word = WORD(RETURNED, GENERATION(l) + 1) } /* T9 */
    fi
  fi;
  atomic { l = 0; w = 0; mine = 0 }
}

#ifdef GATE_NONE

proctype client() {
  byte n, l, w, g;
  bit mine;
  do
  :: atomic { n < CALLS -> n++; argument = n }
    atomic { buffer = WORD(CALLED, n); word = buffer } /* T1; the thread sees its own store */
    g = n;
    serve(l, w, mine);
    if
    :: atomic { IS(word, RETURNED, n) -> assert(result == n || refused == n); returned[n] = 1 }
    :: else -> assert(false)
    fi
  :: atomic { n == CALLS -> break }
  od;
  client_done = 1
}

#else

proctype client() {
  byte n;
  mtype:what outcome;
  {
    do
    :: atomic { n < CALLS -> n++; assert(executing == 0); argument = n }
      atomic { buffer = WORD(CALLED, n); buffered = 1 } /* T1 */
    again:
      atomic { /* the system call: the buffer has drained */
        !buffered;
        if
        :: listening -> state = TRAPPED; number = n; id = 1 - id; outcome = waiting
        :: else -> outcome = no_listener
        fi
      }
      if
      :: atomic { outcome == waiting && state == ANSWERED -> state = NONE; outcome = answered }
      :: atomic { outcome == waiting && !listening && state != ANSWERED -> state = NONE; outcome = no_listener }
      :: atomic { outcome == waiting && state == NONE -> outcome = interrupted }
      :: outcome == no_listener
      fi;
      if
      :: atomic { IS(word, RETURNED, n) -> assert(result == n || refused == n); returned[n] = 1 }
#ifndef BROKEN_SIGNAL_ENDS_CALL
      :: atomic { !IS(word, RETURNED, n) && outcome == interrupted && !(word & REVOKED) -> goto again }
#else
      :: atomic { !IS(word, RETURNED, n) && outcome == interrupted && !(word & REVOKED) -> goto failed }
#endif
      :: atomic { !IS(word, RETURNED, n) && (outcome != interrupted || (word & REVOKED)) -> goto failed }
      fi
    :: atomic { n == CALLS -> break }
    od;
  failed:
    client_done = 1
  } unless { atomic { client_dead -> n = 0; outcome = 0 } }
}

proctype signals() {
  byte left = SIGNALS;
end_signals:
  do
  :: atomic { left > 0 && state == TRAPPED -> left--; state = NONE }
#if KERNEL_FAULT
  :: atomic { left > 0 && state == READ -> left--; state = NONE }
#endif
  od
}

proctype listener() {
  byte l, w, g;
  bit mine, mine_id;
  {
    skip;
  end_listener:
    do
    :: atomic { state == TRAPPED && !server_revoked -> state = READ; g = number; mine_id = id }
      /* the check ladder: the generation is the next one, and the word agrees */
#ifndef BROKEN_TRUST_REGISTERS
      if
      :: atomic { IS_CLAIMED(linkage) || g != GENERATION(linkage) + 1 -> goto answer } /* executed already */
      :: atomic { !IS_CLAIMED(linkage) && g == GENERATION(linkage) + 1 -> w = word }
        if
        :: !IS(w, CALLED, g) -> goto answer
        :: IS(w, CALLED, g) -> w = 0
        fi
      fi;
#endif
#ifdef BROKEN_ANSWER_BEFORE_RETURN
      atomic {
        if
        :: state == READ && id == mine_id -> state = ANSWERED
        :: else
        fi
      }
#endif
      serve(l, w, mine);
    answer:
      atomic {
        if
        :: state == READ && id == mine_id -> state = ANSWERED
        :: else /* it is gone, or another one waits */
        fi;
        g = 0;
        w = 0;
        mine_id = 0
      }
#ifndef BROKEN_LISTENER_WITHOUT_PIDFD
    :: client_dead -> break
#endif
#ifndef BROKEN_LISTENER_NOT_WOKEN
    :: woken -> break
#endif
    :: atomic { server_revoked && state == TRAPPED -> break } /* a trap wakes it, too, and it looks */
    od;
#ifndef BROKEN_LISTENER_KEPT
    listening = 0;
#endif
    listener_ended = 1
  } unless { atomic { server_dead -> l = 0; w = 0; g = 0; mine = 0; mine_id = 0 } }
}

proctype store_buffer() {
end_buffer:
  do
  :: atomic { buffered -> word = buffer; buffered = 0; buffer = 0 }
  od
}

#endif

#if FATE != 0
proctype fate() {
#if FATE == 1
  atomic { server_dead = 1; listening = 0; executing = 0; linkage = 0 }
#elif FATE == 2
  atomic { client_dead = 1; if :: state == TRAPPED || state == READ -> state = NONE :: else fi }
#else
  server_revoked = 1;
  word = word | REVOKED; /* T18 */
  woken = 1
#endif
}
#endif

proctype judge() {
  byte i;
  timeout;
  assert(client_done || client_dead);
  assert(executing == 0 && (server_dead || !IS_CLAIMED(linkage)));
#ifndef GATE_NONE
  assert(listener_ended || FATE < 2);
#endif
  for (i : 1 .. CALLS) {
    assert(FATE != 0 || returned[i]);
    assert(FATE != 0 || executed[i])
  }
}

init {
  atomic {
    run client();
#ifndef GATE_NONE
    run signals();
    run listener();
    run store_buffer();
#endif
#if FATE != 0
    run fate();
#endif
    run judge()
  }
}
