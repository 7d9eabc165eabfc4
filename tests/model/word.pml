/*
 * What the models of calls share: the call word, the server's half of the linkage record, the futex.
 * docs/CALL_WORD.md has the table; T1 .. T19 are its names.
 *
 * One step (one `atomic`) is one access to something that another thread changes, with the private computing around it.
 */

#ifdef BROKEN_NO_GENERATION
#define GENERATIONS 1
#else
#define GENERATIONS 2 /* the word's modulus, 2^24 in the code; even 2 is enough */
#endif

/* The word. */
#define RETURNED 0
#define CALLED 1
#define ABANDONED 2
#define SLEEPS 4
#define PARKED 8
#define REVOKED 16
#define WORD(turn, n) ((turn) | (((n) % GENERATIONS) << 5))
#define IS(w, turn, n) ((((w) ^ WORD(turn, n)) & ~(SLEEPS | PARKED | REVOKED)) == 0)

/* The server's half of the linkage record: generation (full) and whether it is claimed. */
#define FREE(g) ((g) << 1)
#define CLAIMED(g) (((g) << 1) | 1)
#define GENERATION(l) ((l) >> 1)
#define IS_CLAIMED(l) ((l) & 1)

#ifdef BROKEN_SCAN_CALLED_ONLY
#define FOR_ME(w, l) (!IS_CLAIMED(l) && IS(w, CALLED, GENERATION(l) + 1))
#else
#define FOR_ME(w, l) (!IS_CLAIMED(l) && (IS(w, CALLED, GENERATION(l) + 1) || IS(w, ABANDONED, GENERATION(l) + 1)))
#endif
