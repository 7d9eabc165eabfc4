/*
 * Export, import and revocation with a nameserver that dies and is restarted, for spin. docs/MODELS.md has the table;
 * B1 .. B20 are its names.
 *
 * One server domain exports one name (and, with WITHDRAW, takes it back at any time), CLIENTS clients import it once
 * each, and lrpcd dies and comes back RESTARTS times, at any step, with all its state lost. FATE chooses what else goes
 * wrong: the server or the first client dies at any step; with FORKED a child of the dead still holds its sockets.
 *
 * Connections are numbered; each is a pair of reliable channels with an end at each side, and hangs up when one end is
 * closed. What has been sent can still be read after that. Descriptors travel in messages: a message that nobody will
 * read closes what it carries. lrpcd is one thread, and takes one event after another; so is the clerk (the server's
 * watcher thread), beside one thread of the program. The clerk's lock covers one step.
 *
 * With TIMEOUTS any wait that has a bound may end at any moment: an import's, a clerk's answer, the program's for its
 * export. Without it none does, so that nothing can depend on one.
 *
 * What is checked: no invalid end state; at the end, when nothing moves any more, what judge() says: imports have ended
 * as they may, the name is where it should be, no binding has one side only, and lrpcd has nothing left of any of it.
 * Each export and each binding stands for its nonce: the two halves of a binding are those of one number.
 */

#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef TIMEOUTS
#define TIMEOUTS 0
#endif
#ifndef WITHDRAW
#define WITHDRAW 0
#endif
#ifndef CLOSES
#define CLOSES 0 /* may a client close its binding? */
#endif
#ifndef FATE
#define FATE 0 /* 0 nothing, 1 the server dies, 2 the first client dies */
#endif
#ifndef FORKED
#define FORKED 0
#endif
#ifndef BINDS
#define BINDS 1 /* imports that a clerk is asked about at a time */
#endif

#define LINKS (RESTARTS + 1 + WITHDRAW * TIMEOUTS) /* connections that the server can have had */
#define TRIES (RESTARTS + 1)                       /* connections that a client can have had */
#define BINDINGS (CLIENTS * (RESTARTS + 1))

mtype = {
  export, exported, withdraw, withdrawn, failed, bind_request, bind_reply, import, bound
};

/* The server's connections; index 0 is no connection. `open_here` and `open_there`: the library's end, lrpcd's. */
chan to_lrpcd[LINKS + 1] = [4] of { mtype, byte };
chan to_server[LINKS + 1] = [4] of { mtype, byte, byte };
bit s_open[LINKS + 1], d_open[LINKS + 1];

/* The clients' connections, one at a time each. The number of the try tells an old one from the next. */
chan import_of[CLIENTS + 1] = [1] of { mtype };
chan answer_to[CLIENTS + 1] = [1] of { mtype, byte };
bit c_open[CLIENTS + 1], l_open[CLIENTS + 1];

/* Bindings. Each end of the bell (and with it the half of the binding) is nowhere, held by lrpcd or on its way, with
 * its owner, or closed; the other side sees that it is closed. */
#define NOWHERE 0
#define ON_ITS_WAY 1
#define HELD 2
#define CLOSED 3
byte server_end[BINDINGS + 1], client_end[BINDINGS + 1];
byte client_of[BINDINGS + 1];
byte bindings;
bit server_bound[BINDINGS + 1]; /* in the server's map: E-stacks may serve it */
bit client_revoked[BINDINGS + 1];

/* lrpcd. Lost when it dies. */
bit up = 1;
byte restarts_left = RESTARTS;
byte last_export;     /* ids begin anew with each of its lives */
byte holder;          /* the connection that exports the name, 0: nobody */
byte held_id;         /* the export's id */
byte import_state[CLIENTS + 1]; /* 0 none, 1 waits for the name, else 1 + the number of the binding being made */
byte asker[CLIENTS + 1];        /* the connection whose clerk is asked */
byte binds[LINKS + 1];          /* imports that this connection's clerk is asked about */
byte died;            /* how often; ghosts may compare */

/* The server: the clerk's state, under its lock. */
byte link;            /* the connection, 0: none */
byte links;           /* used so far */
bit known, established;
byte registered;      /* id at the nameserver that has it now */
bit asked;            /* asked for again */
bit refused;
#define NOT_ASKED 0
#define WAITED_FOR 1
#define GIVEN_UP 2
byte first, taking_back; /* requests of the program's thread */
byte verdict;         /* its answer: 0 none, 1 granted, 2 not */
bit retry;            /* a retry is posted */
bit wants_withdraw;   /* ghost: the program has taken the name back, or never got it */
bit server_dead;
bit export_failed;

byte outcome[CLIENTS + 1]; /* of the import: 0 under way, 1 bound, 2 failed, 3 timed out or name unknown */
bit client_dead[CLIENTS + 1];

/* ---- lrpcd ---- */

inline close_half(end, b) {
  if
  :: b != 0 -> end[b] = CLOSED
  :: else
  fi
}

/* B8: the import waits for the name (again). B9: whenever the name is there and its server can be asked once more, the
 * first in line has its turn. Which of two that is does not matter here. */
inline serve_one(c) {
  if
  :: holder != 0 && import_state[c] == 1 && binds[holder] < BINDS && bindings < BINDINGS ->
    bindings++;
    client_of[bindings] = c;
    import_state[c] = 1 + bindings;
    asker[c] = holder;
    binds[holder]++;
    client_end[bindings] = ON_ITS_WAY;
    if
    :: s_open[holder] -> server_end[bindings] = ON_ITS_WAY; to_server[holder] ! bind_request(held_id, bindings)
    :: else -> /* it is being found dead: the import stays in line */
      server_end[bindings] = CLOSED;
      client_end[bindings] = CLOSED;
      import_state[c] = 1;
      asker[c] = 0;
      binds[holder]--
    fi
  :: else
  fi
}
inline serve_waiting() {
  serve_one(1);
#if CLIENTS > 1
  serve_one(2)
#endif
}

inline send_to_server(k, what, one, two) {
  if
  :: s_open[k] -> to_server[k] ! what(one, two)
  :: else
  fi
}

/* B14: the clerk's answer does not matter any more; what lrpcd holds of the binding is closed. */
inline end_bind(c) {
  if
  :: import_state[c] > 1 ->
#ifdef BROKEN_BELL_KEPT
    if
    :: client_end[import_state[c] - 1] == ON_ITS_WAY -> skip
    :: else
    fi;
#else
    client_end[import_state[c] - 1] = CLOSED;
#endif
    binds[asker[c]]--;
    asker[c] = 0
  :: else
  fi
}

inline answer_failed(c, why) {
  import_state[c] = 0;
  if
  :: c_open[c] -> answer_to[c] ! failed(why)
  :: else
  fi
}

/* B7: names go with the connection. B13: imports that its clerk was asked about wait for the name again. */
inline drop_server(k, c) {
  d_open[k] = 0;
  if
  :: holder == k -> holder = 0; held_id = 0
  :: else
  fi;
  c = 1;
  do
  :: c <= CLIENTS ->
    if
    :: import_state[c] > 1 && asker[c] == k ->
      end_bind(c);
#ifdef BROKEN_ORPHANS_FORGOTTEN
      import_state[c] = 0
#else
      import_state[c] = 1
#endif
    :: else
    fi;
    c++
  :: else -> break
  od;
  c = 0;
  serve_waiting()
}

proctype lrpcd() {
  byte k, c, b, n;
end_lrpcd:
  do
  :: atomic { up && (
#if LINKS > 0
      (d_open[1] && nempty(to_lrpcd[1]))
#endif
#if LINKS > 1
      || (d_open[2] && nempty(to_lrpcd[2]))
#endif
#if LINKS > 2
      || (d_open[3] && nempty(to_lrpcd[3]))
#endif
      ) ->
      if
      :: d_open[1] && nempty(to_lrpcd[1]) -> k = 1
#if LINKS > 1
      :: d_open[2] && nempty(to_lrpcd[2]) -> k = 2
#endif
#if LINKS > 2
      :: d_open[3] && nempty(to_lrpcd[3]) -> k = 3
#endif
      fi;
      if
      :: to_lrpcd[k] ? export(n) -> /* B2 */
        if
        :: holder != 0 && (holder == k || s_open[holder]) -> send_to_server(k, failed, n, 0)
        :: else ->
          if
          :: holder != 0 -> b = holder; drop_server(b, c); b = 0 /* its hang-up has not been heard yet */
          :: else
          fi;
          last_export++;
          holder = k;
          held_id = last_export;
          send_to_server(k, exported, n, last_export);
          serve_waiting()
        fi
      :: to_lrpcd[k] ? withdraw(n) -> /* B6 */
        if
        :: holder == k && held_id == n -> holder = 0; held_id = 0; send_to_server(k, withdrawn, 0, 0)
        :: else -> send_to_server(k, failed, 9, 0)
        fi
      :: to_lrpcd[k] ? bind_reply(n) -> /* B11: n is twice the binding, and one more if it was refused */
        b = n / 2;
        c = client_of[b];
        if
        :: import_state[c] == 1 + b && asker[c] == k && (n % 2) == 0 -> /* B12: the client gets its half */
          binds[k]--;
          asker[c] = 0;
          import_state[c] = 0;
          if
          :: c_open[c] -> answer_to[c] ! bound(b)
          :: else -> client_end[b] = CLOSED
          fi
        :: import_state[c] == 1 + b && asker[c] == k && (n % 2) == 1 -> end_bind(c); answer_failed(c, 1)
        :: else /* late, or of another life: no harm */
        fi;
        serve_waiting()
      fi;
      k = 0; c = 0; b = 0; n = 0
    }
  :: atomic { up && (d_open[1] && !s_open[1] && empty(to_lrpcd[1])) -> k = 1; drop_server(k, c); k = 0 }
#if LINKS > 1
  :: atomic { up && (d_open[2] && !s_open[2] && empty(to_lrpcd[2])) -> k = 2; drop_server(k, c); k = 0 }
#endif
#if LINKS > 2
  :: atomic { up && (d_open[3] && !s_open[3] && empty(to_lrpcd[3])) -> k = 3; drop_server(k, c); k = 0 }
#endif
#if FORKED
#ifndef BROKEN_NAME_BY_SOCKET_ALONE
  :: atomic { up && server_dead && link != 0 && d_open[link] -> k = link; drop_server(k, c); k = 0 } /* B5: its pidfd */
#endif
#endif
  :: atomic { up && l_open[1] && nempty(import_of[1]) -> import_of[1] ? import; import_state[1] = 1; serve_waiting() }
#if CLIENTS > 1
  :: atomic { up && l_open[2] && nempty(import_of[2]) -> import_of[2] ? import; import_state[2] = 1; serve_waiting() }
#endif
  /* B15: a client is gone; its turn is another's */
  :: atomic {
      up && l_open[1] && !c_open[1] && empty(import_of[1]) ->
      l_open[1] = 0; end_bind(1); import_state[1] = 0;
      serve_waiting()
    }
#if CLIENTS > 1
  :: atomic {
      up && l_open[2] && !c_open[2] && empty(import_of[2]) ->
      l_open[2] = 0; end_bind(2); import_state[2] = 0;
      serve_waiting()
    }
#endif
#if TIMEOUTS
  /* B10: a time is over: of waiting for the name, or the clerk's to answer */
  :: atomic { up && import_state[1] != 0 -> end_bind(1); answer_failed(1, 2); serve_waiting() }
#if CLIENTS > 1
  :: atomic { up && import_state[2] != 0 -> end_bind(2); answer_failed(2, 2); serve_waiting() }
#endif
#endif
  /* It dies, at any step between two messages; everything that it holds is closed. */
  :: atomic {
      up && restarts_left > 0 ->
      restarts_left--;
      died++;
      up = 0;
      last_export = 0;
      holder = 0;
      held_id = 0;
      k = 1;
      do
      :: k <= LINKS ->
        d_open[k] = 0;
        binds[k] = 0;
        do /* what it has not read */
        :: nempty(to_lrpcd[k]) -> to_lrpcd[k] ? _, _
        :: empty(to_lrpcd[k]) -> break
        od;
        k++
      :: else -> break
      od;
      c = 1;
      do
      :: c <= CLIENTS ->
        if
        :: import_state[c] > 1 -> client_end[import_state[c] - 1] = CLOSED
        :: else
        fi;
        import_state[c] = 0;
        asker[c] = 0;
        l_open[c] = 0;
        do
        :: nempty(import_of[c]) -> import_of[c] ? _
        :: empty(import_of[c]) -> break
        od;
        c++
      :: else -> break
      od;
      k = 0;
      c = 0
    }
  :: atomic { !up -> up = 1 }
  od
}

/* ---- the server ---- */

/* B1, B4: a connection; whoever finds that there is one already uses that. */
inline connect() {
  if
  :: link == 0 && links < LINKS -> links++; link = links; s_open[link] = 1; d_open[link] = 1
  :: else
  fi
}

inline ask_again() { /* B4 */
  if
  :: established && registered == 0 && !asked && !refused && link != 0 && d_open[link] ->
    asked = 1; to_lrpcd[link] ! export(2)
  :: else
  fi
}

/* What is in the queue of a connection that is closed here goes, and with it the descriptors in it. */
inline discard(k, b) {
  do
  :: to_server[k] ? bind_request(_, b) -> server_end[b] = CLOSED
  :: to_server[k] ? exported(_, _)
  :: to_server[k] ? withdrawn(_, _)
  :: to_server[k] ? failed(_, _)
  :: empty(to_server[k]) -> break
  od;
  b = 0
}

proctype program() {
  byte k, id;
  {
    /* B1: the first export; with a nameserver that is not there it fails, and the program tries once more */
    skip;
  again:
    atomic { up -> connect(); known = 1; k = link; first = WAITED_FOR; verdict = 0 }
    atomic {
      if
      :: d_open[k] && link == k -> to_lrpcd[k] ! export(1)
      :: else
      fi
    }
    if
    :: atomic { verdict == 1 -> verdict = 0 }
    :: atomic { verdict == 2 -> verdict = 0; known = 0; goto again }
#if TIMEOUTS
    :: atomic { first == WAITED_FOR && link == k -> first = GIVEN_UP }
      known = 0; /* in another step: the answer may come in between */
      atomic { wants_withdraw = 1; export_failed = 1; goto over }
#endif
    fi;
#if WITHDRAW
    atomic { /* B6 */
      wants_withdraw = 1;
      id = registered;
      k = (id != 0 -> link : 0);
#ifndef BROKEN_WITHDRAWN_COMES_BACK
      known = 0;
      established = 0;
      registered = 0;
#else
      if
      :: id != 0 -> known = 0; established = 0; registered = 0
      :: else
      fi;
#endif
      if
      :: k != 0 -> taking_back = WAITED_FOR
      :: else -> goto over
      fi
    }
    atomic {
      if
      :: d_open[k] && link == k -> to_lrpcd[k] ! withdraw(id)
      :: else
      fi
    }
    if
    :: atomic { verdict != 0 -> verdict = 0 } /* withdrawn, or the name went with the nameserver */
#if TIMEOUTS
    :: atomic { taking_back == WAITED_FOR && link == k -> taking_back = GIVEN_UP; s_open[k] = 0 } /* hangs up */
#endif
    fi;
#endif
  over:
    skip
  } unless { server_dead }
}

proctype clerk() {
  byte id, b, n;
  {
    skip;
  end_clerk:
    do
    /* One message of the nameserver's */
    :: atomic { link != 0 && nempty(to_server[link]) ->
        if
        :: to_server[link] ? exported(n, id) -> /* B3 */
          if
          :: n == 1 && first == WAITED_FOR ->
            first = NOT_ASKED; known = 1; established = 1; registered = id; verdict = 1
          :: n == 1 && first == GIVEN_UP -> first = NOT_ASKED; /* late */
#ifndef BROKEN_LATE_ANSWER_KEPT
            if
            :: d_open[link] -> to_lrpcd[link] ! withdraw(id)
            :: else
            fi
#endif
          :: n == 2 && known && established -> asked = 0; registered = id
          :: n == 2 && !(known && established) -> asked = 0;
            if
            :: d_open[link] -> to_lrpcd[link] ! withdraw(id)
            :: else
            fi
          :: else
          fi
        :: to_server[link] ? failed(n, _) ->
          if
          :: n == 1 -> if :: first == WAITED_FOR -> verdict = 2 :: else fi; first = NOT_ASKED
          :: n == 2 -> asked = 0; if :: known && established -> refused = 1; retry = 1 :: else fi
          :: else -> if :: taking_back == WAITED_FOR -> verdict = 2 :: else fi; taking_back = NOT_ASKED
          fi
        :: to_server[link] ? withdrawn(_, _) ->
          if
          :: taking_back == WAITED_FOR -> verdict = 1
          :: else
          fi;
          taking_back = NOT_ASKED
        :: to_server[link] ? bind_request(id, b) -> /* B11 */
          if
#ifdef BROKEN_WITHDRAWN_IS_BOUND
          :: true ->
#else
          :: registered == id && id != 0 ->
#endif
            assert(!wants_withdraw); /* who has taken his name back gets no more clients */
            server_end[b] = HELD;
            server_bound[b] = 1;
            if
            :: d_open[link] -> to_lrpcd[link] ! bind_reply(2 * b)
            :: else
            fi
#ifndef BROKEN_WITHDRAWN_IS_BOUND
          :: else ->
            server_end[b] = CLOSED;
            if
            :: d_open[link] -> to_lrpcd[link] ! bind_reply(2 * b + 1)
            :: else
            fi
#endif
          fi
        fi;
        ask_again();
        id = 0; b = 0; n = 0
      }
    /* B16: the nameserver is gone (all that it sent has been read), or this side hung up */
    :: atomic {
        link != 0 && (!d_open[link] || !s_open[link]) && empty(to_server[link]) ->
        s_open[link] = 0;
        link = 0;
        if
        :: first == WAITED_FOR -> verdict = 2
        :: else
        fi;
        if
        :: taking_back == WAITED_FOR -> verdict = 2
        :: else
        fi;
        first = NOT_ASKED;
        taking_back = NOT_ASKED;
        asked = 0;
        refused = 0;
        if
        :: established ->
#ifndef BROKEN_REGISTERED_KEPT
          registered = 0;
#endif
          retry = 1
        :: else
        fi
      }
    /* B4: connects and asks again */
#ifndef BROKEN_NO_RETRY
    :: atomic { retry && up && (link == 0 || d_open[link]) && established && registered == 0 ->
        retry = 0;
        refused = 0;
        connect();
        ask_again()
      }
#endif
    /* B17: a bell hangs up, or the client's pidfd is readable: the binding ends */
    :: atomic {
        server_bound[1] && (
#ifndef BROKEN_BELL_NOT_WATCHED
        client_end[1] == CLOSED ||
#endif
#ifndef BROKEN_CLIENT_PIDFD_NOT_WATCHED
        client_dead[client_of[1]] ||
#endif
        false) -> server_bound[1] = 0; server_end[1] = CLOSED
      }
#if CLIENTS * (RESTARTS + 1) > 1
    :: atomic {
        server_bound[2] && (
#ifndef BROKEN_BELL_NOT_WATCHED
        client_end[2] == CLOSED ||
#endif
#ifndef BROKEN_CLIENT_PIDFD_NOT_WATCHED
        client_dead[client_of[2]] ||
#endif
        false) -> server_bound[2] = 0; server_end[2] = CLOSED
      }
#endif
#if CLIENTS * (RESTARTS + 1) > 2
    :: atomic {
        server_bound[3] && (client_end[3] == CLOSED || client_dead[client_of[3]]) ->
          server_bound[3] = 0; server_end[3] = CLOSED
      }
    :: atomic {
        server_bound[4] && (client_end[4] == CLOSED || client_dead[client_of[4]]) ->
          server_bound[4] = 0; server_end[4] = CLOSED
      }
#endif
    od
  } unless { server_dead }
}

/* ---- the clients ---- */

proctype client(byte me) {
  byte b, why;
  {
    do
    /* B18: connects, and asks. Without a nameserver it waits for one: it came for a name that may come later. */
    :: atomic { up && !l_open[me] -> c_open[me] = 1; l_open[me] = 1; import_of[me] ! import }
    end_waiting: /* for a name that nobody exports; the judge looks at that */
      if
      :: atomic { answer_to[me] ? bound(b) -> /* B19 */
          assert(client_of[b] == me && client_end[b] == ON_ITS_WAY);
          client_end[b] = HELD;
          outcome[me] = 1;
          c_open[me] = 0;
          break
        }
      :: atomic { answer_to[me] ? failed(why) -> c_open[me] = 0; outcome[me] = 1 + why; break }
      :: atomic { !l_open[me] && empty(answer_to[me]) -> c_open[me] = 0; /* hung up */
#ifdef BROKEN_IMPORTER_GIVES_UP
          outcome[me] = 2;
          break
#endif
        }
#if TIMEOUTS
      :: atomic { empty(answer_to[me]) -> c_open[me] = 0; outcome[me] = 3; break } /* nobody answered in time */
      :: atomic { answer_to[me] ? bound(b) -> client_end[b] = CLOSED; b = 0; c_open[me] = 0; outcome[me] = 3; break }
#endif
      fi
#if TIMEOUTS
    :: atomic { outcome[me] = 3; break }
#endif
    od;
    if
    :: b == 0 -> goto over
    :: else
    fi;
  end_bound:
    if /* B20: the watcher sees the server's end go, or its pidfd */
    :: atomic {
        (
#ifndef BROKEN_SERVER_NOT_WATCHED
        server_end[b] == CLOSED || server_dead ||
#endif
        false) -> client_revoked[b] = 1
      }
#if CLOSES
    :: client_end[b] = CLOSED
#endif
    fi;
  over:
    skip
  } unless { client_dead[me] }
}

#if FATE != 0
proctype fate() {
  byte i, k;
#if FATE == 1
  atomic {
    server_dead = 1;
    i = 1;
    do
    :: i <= BINDINGS ->
      server_bound[i] = 0;
      if
      :: server_end[i] == HELD && !FORKED -> server_end[i] = CLOSED
      :: else
      fi;
      i++
    :: else -> break
    od;
    k = link;
    if
    :: k != 0 && !FORKED -> s_open[k] = 0; discard(k, i)
    :: else
    fi;
    i = 0
  }
#else
  atomic {
    client_dead[1] = 1;
    i = 1;
    do
    :: i <= BINDINGS ->
      if
      :: client_of[i] == 1 && client_end[i] == HELD && !FORKED -> client_end[i] = CLOSED
      :: else
      fi;
      i++
    :: else -> break
    od;
    c_open[1] = 0;
    if
    :: answer_to[1] ?? [bound(_)] -> answer_to[1] ? bound(k); client_end[k] = CLOSED
    :: answer_to[1] ?? [failed(_)] -> answer_to[1] ? failed(_)
    :: else
    fi;
    k = 0;
    i = 0
  }
#endif
}
#endif

proctype judge() {
  byte i;
  timeout; /* nothing else can move */
  /* The name is where it should be. */
  assert(server_dead || wants_withdraw || (holder != 0 && holder == link && registered == held_id));
  assert(!(server_dead || wants_withdraw) || holder == 0);
  for (i : 1 .. CLIENTS) {
    /* Imports have ended, unless they wait for a name that nobody exports; without time limits and fates, bound. */
    assert(client_dead[i] || outcome[i] != 0 || (holder == 0 && import_state[i] == 1));
    assert(client_dead[i] || outcome[i] == 0 || outcome[i] == 1 || TIMEOUTS || WITHDRAW || FATE != 0);
    /* lrpcd has nothing left of it but who waits for a name. */
    assert(import_state[i] <= 1 && asker[i] == 0);
    assert(import_state[i] == 0 || (outcome[i] == 0 && holder == 0))
  }
  for (i : 1 .. LINKS) {
    assert(binds[i] == 0)
  }
  for (i : 1 .. BINDINGS) {
    /* No binding has one side only, and no end is on its way to nobody. */
    assert(!server_bound[i] || (client_end[i] == HELD && !client_dead[client_of[i]]));
    assert(client_end[i] != HELD || client_dead[client_of[i]] || client_revoked[i] ||
           (server_bound[i] && server_end[i] == HELD));
    assert(client_end[i] != ON_ITS_WAY);
    assert(server_end[i] != ON_ITS_WAY || (FORKED && server_dead));
    /* One that was revoked stays so. */
    assert(!client_revoked[i] || !server_bound[i])
  }
}

init {
  atomic {
    run lrpcd();
    run program();
    run clerk();
    run client(1);
#if CLIENTS > 1
    run client(2);
#endif
#if FATE != 0
    run fate();
#endif
    run judge()
  }
}
