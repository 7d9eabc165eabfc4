/*
 * Growth of the supply of A-stacks by secondary regions, for spin: asking over the bell, granting, refusing, letting
 * back. docs/MODELS.md has the table; G1 .. G10 are its names.
 *
 * CALLERS threads of a client make CALLS calls each over one binding, whose primary region has one A-stack; a secondary
 * region has one, too. Who finds none asks for a region; REGIONS times in all. A request is numbered, and so are its
 * line (the socket pair over which the answer comes) and the region that comes of it. Each end of a line is open or
 * closed; what was sent before can still be read. The server grants LIMIT regions at a time.
 *
 * The call word is call_word.pml's; a call is rung, executed and returned here, or abandoned while it runs (DEADLINES):
 * then its A-stack waits in quarantine. With TOGETHER no call ends before all callers' calls run: who is not told that
 * there is an A-stack for him then waits for ever; and nothing is let back before, for here that would come before
 * anybody can take it. FATE chooses what goes wrong, at any step: nothing, the server dies, the client dies, or the
 * server hangs up in another thread than its clerk's.
 *
 * There is no clock. The sleep of who waits for an A-stack ends by itself only where the code says that it is short (he
 * found the lock taken, or no answer yet), and a request is given up only if GIVES_UP; the client's timer, which looks
 * after what was granted and is not used, comes at any moment when it finds something to do.
 *
 * What is checked: no invalid end state; who uses an A-stack, at either side, has its region; no region is given back
 * in use; no request is refused for the place of a region that was given back; and in the end, as judge() says, every
 * call has ended and nothing is left of any secondary region, at neither side nor on its way.
 */

#ifndef CALLERS
#define CALLERS 2
#endif
#ifndef CALLS
#define CALLS 1
#endif
#ifndef REGIONS
#define REGIONS 2
#endif
#ifndef PLACES
#define PLACES 2
#endif
#ifndef LIMIT
#define LIMIT REGIONS
#endif
#ifndef DEADLINES
#define DEADLINES 0
#endif
#ifndef TOGETHER
#define TOGETHER 0
#endif
#ifndef GIVES_UP
#define GIVES_UP 0
#endif
#ifndef FATE
#define FATE 0 /* 0 nothing, 1 the server dies, 2 the client dies, 3 the server hangs up */
#endif

/* Lines. An open end at the server's side is on the bell, with the clerk, or its region's. */
bit c_end[REGIONS + 1], s_end[REGIONS + 1];
byte place_of[REGIONS + 1]; /* in the request */
#define GRANTED 1 /* with the region's descriptor */
#define REFUSED 2
byte answer[REGIONS + 1];
chan bell = [1] of { byte };

/* A-stacks: 0 is the primary one, the others are those of the regions. The word, as far as it matters here. */
#define RETURNED 0
#define CALLED 1
#define ABANDONED 2
byte word[REGIONS + 1];
bit word_revoked[REGIONS + 1];

/* Private to the client. */
#define NOWHERE 0
#define LISTED 1
#define IN_CALL 2
#define QUARANTINED 3
#define TAKEN_OUT 4 /* by the timer, that looks whether all of a region are idle */
byte home[REGIONS + 1];
byte at[PLACES + 1]; /* the region in the place, 0: free */
byte requests;
bit asking;          /* the lock of who asks */
byte asked;          /* the request under way, 0: none */
bit trimming;
bit client_revoked;
/* who waits for an A-stack; `seen`: the count is unchanged since */
bit announced[CALLERS + 1], asleep[CALLERS + 1], seen[CALLERS + 1];

/* Private to the server. */
bit listed[REGIONS + 1];  /* in the binding's list */
bit watched[REGIONS + 1];
bit counted[REGIONS + 1]; /* the region is there, and is counted */
bit executing[REGIONS + 1];
bit server_revoked;
bit handling, unwatched; /* the clerk is at a message of the bell; it will not look at the bell any more */
byte counts;

bit server_dead, client_dead, hung_up;

/* Ghosts. */
byte begun, done;

/* ---- who waits for an A-stack ---- */

inline wake_waiters() { /* one step: the count is changed, whoever sleeps on it is woken */
  asleep[1] = 0; seen[1] = 0;
#if CALLERS > 1
  asleep[2] = 0; seen[2] = 0;
#endif
#if CALLERS > 2
  asleep[3] = 0; seen[3] = 0;
#endif
}
#if CALLERS == 1
#define ANYBODY_WAITS announced[1]
#elif CALLERS == 2
#define ANYBODY_WAITS (announced[1] || announced[2])
#else
#define ANYBODY_WAITS (announced[1] || announced[2] || announced[3])
#endif

#if REGIONS == 1
#define ANY(what) (what(1))
#elif REGIONS == 2
#define ANY(what) (what(1) || what(2))
#else
#define ANY(what) (what(1) || what(2) || what(3))
#endif
#define IS_LISTED(r) (home[r] == LISTED)
#define ANY_LISTED (IS_LISTED(0) || ANY(IS_LISTED))
#define IS_BACK(r) (home[r] == QUARANTINED && word[r] == RETURNED)
#define ANY_BACK (IS_BACK(0) || ANY(IS_BACK))

/* ---- the client: asking and taking what is granted ---- */

/* what was sent and not read is closed with it: nothing of the region is left here */
inline hang_up(r) { c_end[r] = 0 }

/* G2, G6, G7: the answer of request `r`, which is not under way any more. Under the lock of who asks. */
inline take_answer(r, added) {
  if
  :: atomic { answer[r] == GRANTED -> added = 1 }
    atomic {
      if
      :: !client_revoked -> /* either the revocation sees the region, or we see it */
        assert(at[place_of[r]] == 0 && home[r] == NOWHERE);
        at[place_of[r]] = r;
        home[r] = LISTED
      :: else -> hang_up(r); added = 0
      fi
    }
    atomic { wake_waiters() }
  :: atomic { answer[r] != GRANTED -> hang_up(r); added = 0 }
  fi
}

#define THERE(r) (answer[r] != 0 || !s_end[r])

proctype caller(byte me) {
  byte n, r;
  bit added, waits;
  {
    do
    :: atomic { n < CALLS -> n++ }
    take:
      seen[me] = 1; /* before the look at the revocation: whoever revokes counts afterwards */
      if
      :: atomic { client_revoked -> goto over }
      :: atomic { !client_revoked && home[0] == LISTED -> r = 0; home[0] = IN_CALL; goto call }
      :: atomic { !client_revoked && home[0] != LISTED && ANY_LISTED ->
          if
          :: home[1] == LISTED -> r = 1
#if REGIONS > 1
          :: home[2] == LISTED -> r = 2
#endif
#if REGIONS > 2
          :: home[3] == LISTED -> r = 3
#endif
          fi;
          home[r] = IN_CALL;
          goto call
        }
#if DEADLINES
      :: atomic { !client_revoked && !ANY_LISTED && ANY_BACK ->
          if
          :: IS_BACK(0) -> home[0] = LISTED
          :: IS_BACK(1) -> home[1] = LISTED
#if REGIONS > 1
          :: IS_BACK(2) -> home[2] = LISTED
#endif
#if REGIONS > 2
          :: IS_BACK(3) -> home[3] = LISTED
#endif
          fi;
          goto take
        }
#endif
      :: atomic { !client_revoked && !ANY_LISTED && !ANY_BACK && !trimming }
      fi;

      /* G1: asks for more, or looks for the answer */
      if
      :: atomic { asking -> waits = 1; goto sleep } /* somebody else is at it */
      :: atomic { !asking -> asking = 1 }
      fi;
      if
      :: atomic { asked == 0 && (client_revoked || requests == REGIONS) -> /* refused, for now */
          asking = 0; waits = 0; goto sleep }
      :: atomic { asked == 0 && !client_revoked && requests < REGIONS && ANY_LISTED -> asking = 0; goto take }
      :: atomic {
          asked == 0 && !client_revoked && requests < REGIONS && !ANY_LISTED ->
          requests++;
          r = 0;
          if
          :: at[1] == 0 -> r = 1
#if PLACES > 1
          :: at[1] != 0 && at[2] == 0 -> r = 2
#endif
          :: else
          fi;
          place_of[requests] = r;
          if
          :: r != 0 && len(bell) == 0 && !server_dead && !server_revoked ->
            c_end[requests] = 1; s_end[requests] = 1; asked = requests; bell ! requests
          :: else -> asking = 0; waits = 0; r = 0; goto sleep /* no place, the bell is full, or hung up */
          fi;
          r = 0
        }
      :: asked != 0
      fi;
      if
      :: atomic { THERE(asked) -> r = asked; asked = 0 }
        take_answer(r, added);
        atomic {
          r = 0;
          asking = 0;
          if
          :: added -> added = 0; goto take
          :: else -> waits = 0
          fi
        }
      :: atomic { !THERE(asked) -> waits = 1; asking = 0 } /* not yet */
#if GIVES_UP
      :: !THERE(asked) ->
        atomic { /* in another step: the answer may come in between */
          r = asked;
          asked = 0;
#ifndef BROKEN_LINE_KEPT
          hang_up(r);
#endif
          r = 0;
          asking = 0;
          waits = 0
        }
#endif
      fi;

    sleep: /* G3 */
#ifdef BROKEN_LOOKED_AT_FIRST
      if
      :: ANY_LISTED -> goto awake
      :: !ANY_LISTED
      fi;
      announced[me] = 1;
#else
      announced[me] = 1;
      if
      :: ANY_LISTED -> goto awake
      :: !ANY_LISTED
      fi;
#endif
      atomic { asleep[me] = seen[me] }
    end_asleep: /* for ever, when the A-stacks are with calls that are; the judge looks at that */
      if
      :: !asleep[me]
#ifndef BROKEN_LOOKS_ONCE
      :: asleep[me] && waits /* 5 ms: the wake-up may have come before he was announced */
#endif
#if DEADLINES
      :: asleep[me] && ANY_BACK /* nothing wakes him on that: he looks every 100 ms */
#endif
      fi;
    awake:
      atomic { asleep[me] = 0; announced[me] = 0; seen[me] = 0; waits = 0; goto take }

    call:
      atomic {
        assert(r == 0 || (at[place_of[r]] == r && c_end[r]));
        assert(word[r] == RETURNED);
        word[r] = CALLED;
        word_revoked[r] = 0
      }
      if /* T3: the flag is looked at before the sleep; the sleep ends when the word changes */
      :: client_revoked -> goto over
      :: !client_revoked
      fi;
      if
      :: atomic { word[r] == RETURNED -> skip }
        if /* G10: put back; who takes idle ones out does not find one in a call */
        :: true -> atomic { assert(home[r] == IN_CALL); home[r] = LISTED; r = 0 }
        fi;
        if
        :: atomic { ANYBODY_WAITS -> wake_waiters() }
        :: !ANYBODY_WAITS
        fi
      :: atomic { word[r] != RETURNED && word_revoked[r] -> goto over }
#if DEADLINES
      :: atomic { word[r] == CALLED && !word_revoked[r] -> word[r] = ABANDONED; home[r] = QUARANTINED; r = 0 } /* T15 */
#endif
      fi
    :: atomic { n == CALLS -> break }
    od;
  over:
    atomic { done++; r = 0 }
  } unless { atomic { client_dead -> n = 0; r = 0; added = 0; waits = 0 } }
}

/* G8: what nobody looks for any more, and what nobody uses. On the client's watcher. */
#define UNUSED(r) (home[r] == LISTED)
proctype timer() {
  byte r;
  bit added, primary;
  {
    skip;
  end_timer:
    do
#ifndef BROKEN_TIMER_DOES_NOT_LOOK
    :: atomic { asked != 0 && !asking && !client_revoked && THERE(asked) -> asking = 1; r = asked; asked = 0 }
      take_answer(r, added);
      atomic { asking = 0; r = 0; added = 0 }
#endif
#if DEADLINES
    :: atomic { IS_BACK(1) && !client_revoked -> home[1] = LISTED }
#if REGIONS > 1
    :: atomic { IS_BACK(2) && !client_revoked -> home[2] = LISTED }
#endif
#if REGIONS > 2
    :: atomic { IS_BACK(3) && !client_revoked -> home[3] = LISTED }
#endif
#endif
    :: atomic {
        ANY(UNUSED) && !client_revoked && (!TOGETHER || done == CALLERS) ->
        if
        :: UNUSED(1) -> r = 1
#if REGIONS > 1
        :: UNUSED(2) -> r = 2
#endif
#if REGIONS > 2
        :: UNUSED(3) -> r = 3
#endif
        fi;
        trimming = 1;
        if
        :: home[0] == LISTED -> home[0] = TAKEN_OUT; primary = 1 /* the list gives its idle ones, all of them */
        :: else
        fi;
#ifndef BROKEN_IDLE_NOT_TAKEN_OUT
        home[r] = TAKEN_OUT
#endif
      }
#ifndef BROKEN_HANGS_UP_LAST
      atomic {
        assert(home[r] != QUARANTINED && home[r] != IN_CALL && word[r] == RETURNED);
        at[place_of[r]] = 0;
        hang_up(r);
        home[r] = NOWHERE
      }
#else
      atomic { at[place_of[r]] = 0; home[r] = NOWHERE }
#endif
      if
      :: atomic { primary -> home[0] = LISTED }
      :: atomic { !primary }
      fi;
#ifndef BROKEN_PUT_BACK_WAKES_NOBODY
      if
      :: atomic { ANYBODY_WAITS -> wake_waiters() }
      :: !ANYBODY_WAITS
      fi;
#endif
#ifdef BROKEN_HANGS_UP_LAST
      hang_up(r);
#endif
      atomic { trimming = 0; primary = 0; r = 0 }
    od
  } unless { atomic { client_dead -> r = 0; added = 0; primary = 0 } }
}

/* ---- the server ---- */

/* One E-stack for each A-stack: it holds the region while it executes there. */
inline let_go(r) { /* of a region that is in no list any more */
  if
#ifndef BROKEN_FREED_WHILE_EXECUTING
  :: executing[r]
#endif
  :: else -> counts = counts - counted[r]; counted[r] = 0
  fi
}

proctype estack(byte r) {
  {
    skip;
  end_estack:
    do
    :: atomic { (r == 0 || listed[r]) && !server_revoked && word[r] != RETURNED -> executing[r] = 1; begun++ }
#if TOGETHER
    end_together:
      begun == CALLERS;
#endif
      atomic {
        assert(r == 0 || counted[r]); /* it is mapped */
        assert(word[r] != RETURNED);
        word[r] = RETURNED;
        executing[r] = 0;
        if
        :: r != 0 && !listed[r] -> let_go(r)
        :: else
        fi
      }
    od
  } unless { server_dead }
}

/* G9: the client has let go */
inline on_line(r) {
  watched[r] = 0;
  listed[r] = 0;
  s_end[r] = 0;
  let_go(r)
}
#define ENDED(r) (watched[r] && !c_end[r])

inline refuse(r) { answer[r] = REFUSED; s_end[r] = 0 }

/* G10: the binding is over (T18), and what it has goes. The bell is closed, and with it what is still in it. */
inline end_binding(i) {
#ifndef BROKEN_ENDS_WITHOUT_REGIONS
  for (i : 1 .. REGIONS) {
    if
    :: listed[i] -> on_line(i)
    :: else
    fi
  }
#endif
  do
  :: nempty(bell) -> bell ? i; s_end[i] = 0
  :: empty(bell) -> break
  od;
  i = 0
}

proctype clerk() {
  byte r, i;
  {
    skip;
  end_clerk:
    do
    :: atomic { nempty(bell) && !unwatched -> bell ? r; handling = 1 }
      /* G4 */
#ifndef BROKEN_ENDED_NOT_LOOKED_AT
      atomic {
        for (i : 1 .. REGIONS) {
          if
          :: listed[i] && ENDED(i) -> on_line(i)
          :: else
          fi
        }
        i = 0
      }
#endif
      atomic {
        if
        :: counts >= LIMIT -> refuse(r); r = 0
        :: else -> counts++; counted[r] = 1;
#ifndef BROKEN_LINE_NOT_WATCHED
          watched[r] = 1
#endif
        fi
      }
      if
      :: r == 0
      :: r != 0 ->
        atomic { /* G5: added to the binding, under its lock */
          for (i : 1 .. REGIONS) {
            if
            :: listed[i] -> assert(place_of[i] != place_of[r])
            :: else
            fi
          }
          i = 0;
          if
#ifndef BROKEN_ADDED_AFTER_THE_END /* beside unwatch() that waits, this is the second guard against the same */
          :: server_revoked -> watched[r] = 0; counted[r] = 0; counts--; refuse(r); r = 0
#endif
          :: else -> listed[r] = 1
          fi
        }
        atomic {
          if
          :: r != 0 -> answer[r] = GRANTED; r = 0 /* G6 */
          :: else
          fi
        }
      fi;
      handling = 0
    /* G9 */
    :: atomic { ENDED(1) -> on_line(1) }
#if REGIONS > 1
    :: atomic { ENDED(2) -> on_line(2) }
#endif
#if REGIONS > 2
    :: atomic { ENDED(3) -> on_line(3) }
#endif
#if FATE == 2
    :: atomic { client_dead && !server_revoked -> unwatched = 1; server_revoked = 1; end_binding(i) }
#endif
    od
  } unless { atomic { server_dead -> r = 0; i = 0 } }
}

/* ---- what goes wrong ---- */

#if FATE != 0
proctype client_watcher() { /* T17 */
  {
    skip;
  end_watch:
    server_dead || server_revoked;
#ifdef BROKEN_FLAG_LAST
    skip;
#else
    client_revoked = 1;
#endif
    word_revoked[0] = 1;
#ifndef BROKEN_PRIMARY_REVOKED_ALONE
    atomic {
      word_revoked[1] = at[place_of[1]] == 1;
#if REGIONS > 1
      word_revoked[2] = at[place_of[2]] == 2;
#endif
#if REGIONS > 2
      word_revoked[3] = at[place_of[3]] == 3
#endif
    }
#endif
#ifdef BROKEN_FLAG_LAST
    client_revoked = 1;
#endif
    atomic { wake_waiters() }
  } unless { client_dead }
}

proctype fate() {
  byte i;
#if FATE == 1
  atomic {
    server_dead = 1;
    for (i : 1 .. REGIONS) {
      s_end[i] = 0;
      listed[i] = 0;
      watched[i] = 0;
      counted[i] = 0;
      executing[i] = 0
    }
    counts = 0;
    do
    :: nempty(bell) -> bell ? _
    :: empty(bell) -> break
    od;
    i = 0
  }
#elif FATE == 2
  atomic {
    client_dead = 1;
    for (i : 1 .. REGIONS) {
      hang_up(i);
      home[i] = NOWHERE
    }
    for (i : 1 .. PLACES) {
      at[i] = 0
    }
    for (i : 1 .. CALLERS) {
      asleep[i] = 0;
      announced[i] = 0;
      seen[i] = 0
    }
    asking = 0;
    asked = 0;
    trimming = 0;
    requests = REGIONS;
    i = 0
  }
#else
#ifdef BROKEN_ADDED_AFTER_THE_END
  unwatched = 1;
#else
  atomic { !handling -> unwatched = 1 } /* unwatch() waits for who is at it */
#endif
  server_revoked = 1;
  atomic { end_binding(i) }
#endif
}
#endif

proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  /* Every call has ended: also one that waited for an A-stack. */
  assert(client_dead || done == CALLERS);
  assert(!trimming && !asking);
  for (i : 1 .. REGIONS) {
    /* The server has nothing left, once the client has not. */
    assert(listed[i] <= c_end[i] && counted[i] <= listed[i] && watched[i] <= listed[i]);
    assert(!executing[i]);
    assert(s_end[i] == listed[i]);
    /* The client has regions in places and a request under way, and no line beside; with nothing wrong, none of it. */
    assert(!c_end[i] || client_revoked || asked == i || at[place_of[i]] == i);
    assert(!c_end[i] || FATE == 1 || FATE == 3);
    assert(FATE != 3 || !listed[i])
  }
  assert(counts == 0);
  assert(client_dead || client_revoked || ((home[0] == LISTED || IS_BACK(0)) && at[1] == 0 && asked == 0))
}

init {
  atomic {
    home[0] = LISTED;
    run caller(1);
#if CALLERS > 1
    run caller(2);
#endif
#if CALLERS > 2
    run caller(3);
#endif
    run timer();
    run estack(0);
    run estack(1);
#if REGIONS > 1
    run estack(2);
#endif
#if REGIONS > 2
    run estack(3);
#endif
    run clerk();
#if FATE != 0
    run client_watcher();
    run fate();
#endif
    run judge()
  }
}
