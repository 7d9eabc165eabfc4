/* sun_client ADDRESS PORT [tcp]: rpcgen's client of Conformance, over UDP or TCP. With PORT 0 it asks rpcbind.
   Calls every procedure that Sun RPC can call, and some that it cannot, and prints what it was told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "rpcgen_client.h"

static CLIENT *client_of(char **where, unsigned long version) {
  return client_at(where[1], (unsigned)atoi(where[2]), where[3] != NULL, CONFORMANCE_PROGRAM, version);
}

static void check(CLIENT *client, unsigned value) {
  Conformance_Check_outcome *outcome = conformance_check_2(&value, client);
  if (outcome == NULL) return;
  if (outcome->status == 0) printf("check %u: %u\n", value, outcome->Conformance_Check_outcome_u.results);
  if (outcome->status == 1)
    printf("check %u: TooBig %u %s\n", value, outcome->Conformance_Check_outcome_u.TooBig.limit,
           outcome->Conformance_Check_outcome_u.TooBig.what);
  if (outcome->status == 2)
    printf("check %u: Refused %s\n", value, outcome->Conformance_Check_outcome_u.Refused.reason);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  CLIENT *client = client_of(argv, CONFORMANCE_VERSION);
  printf("null: %s\n", conformance_null_2(NULL, client) != NULL ? "done" : "failed");

  Conformance_Add_arguments sum = {20, -62};
  int *added = conformance_add_2(&sum, client);
  if (added != NULL) printf("add: %d\n", *added);

  Conformance_BigInOut_arguments big;
  for (int i = 0; i < 200; ++i) big.data[i] = (char)i;
  Conformance_BigInOut_results *turned = conformance_biginout_2(&big, client);
  if (turned != NULL) printf("big: %d %d\n", (unsigned char)turned->data[0], (unsigned char)turned->data[199]);

  Conformance_Integers_arguments in = {-128, 255, -32768, 65535, -2147483647 - 1, 4294967295U, -5000000000LL, ~0ULL};
  Conformance_Integers_results *out = conformance_integers_2(&in, client);
  if (out != NULL)
    printf("integers: %d %u %d %u %d %u %lld %llu\n", out->a2, out->b2, out->c2, out->d2, out->e2, out->f2,
           (long long)out->g2, (unsigned long long)out->h2);

  Conformance_Floats_arguments reals = {1.25f, -1e300};
  Conformance_Floats_results *same = conformance_floats_2(&reals, client);
  if (same != NULL) printf("floats: %g %g\n", same->a2, same->b2);

  bool_t yes = TRUE;
  bool_t *flipped = conformance_flip_2(&yes, client);
  if (flipped != NULL) printf("flip: %d\n", *flipped);

  Conformance_Colour colour = Conformance_Colour_Green;
  Conformance_Colour *next = conformance_nextcolour_2(&colour, client);
  if (next != NULL) printf("colour: %d\n", *next);

  Conformance_Halve_arguments shares = {90, -10};
  Conformance_Halve_results *half = conformance_halve_2(&shares, client);
  if (half != NULL) printf("halve: %u %d\n", half->half, half->negated);

  Conformance_Shape shape = {"triangle", Conformance_Colour_Blue, {{1, 0.5}, {-2, 1.5}, {3, -2.5}}, FALSE, 100};
  Conformance_Mirror_results *mirror = conformance_mirror_2(&shape, client);
  if (mirror != NULL)
    printf("mirror: %s %d %d %g %d %d %u %d\n", mirror->shape.name, mirror->shape.colour, mirror->shape.corners[0].x,
           mirror->shape.corners[2].y, mirror->shape.corners[1].x, mirror->shape.filled, mirror->shape.share,
           mirror->moved);

  Conformance_Greet_arguments name = {"you"};
  Conformance_Greet_results *greeting = conformance_greet_2(&name, client);
  if (greeting != NULL) printf("greet: %s\n", greeting->greeting);

  static char first[2001], second[2001];
  memset(first, 'a', 2000);
  memset(second, 'b', 1999);
  Conformance_Concatenate_arguments both = {first, second};
  Conformance_Concatenate_results *joined = conformance_concatenate_2(&both, client);
  if (joined != NULL)
    printf("concatenate: %zu %c%c\n", strlen(joined->both), joined->both[1999], joined->both[2000]);

  static char bytes[12000];
  memset(bytes, 3, sizeof bytes);
  Conformance_Sum_arguments large = {{sizeof bytes, bytes}};
  u_quad_t *total = conformance_sum_2(&large, client);
  if (total != NULL) printf("sum: %llu\n", (unsigned long long)*total);
  Conformance_Sum_arguments none = {{0, bytes}};
  total = conformance_sum_2(&none, client);
  if (total != NULL) printf("sum of none: %llu\n", (unsigned long long)*total);

  Conformance_Fill_arguments filling = {12000, 7};
  Conformance_Fill_results *filled = conformance_fill_2(&filling, client);
  if (filled != NULL) printf("fill: %u %d\n", filled->data.data_len, filled->data.data_val[11999]);

  bytes[0] = 9;
  Conformance_Reverse_arguments straight = {{12000, bytes}};
  Conformance_Reverse_results *reversed = conformance_reverse_2(&straight, client);
  if (reversed != NULL) printf("reverse: %u %d\n", reversed->data.data_len, reversed->data.data_val[11999]);

  check(client, 50);
  check(client, 101);
  check(client, 13);

  int *process = conformance_serverpid_2(NULL, client);
  printf("pid: %s\n", process != NULL && *process > 0 ? "one" : "none");

  try("Sun RPC's own", client, NULLPROC, (xdrproc_t)xdr_void, NULL);
  try("no procedure", client, 99, (xdrproc_t)xdr_void, NULL);
  try("a procedure with a handle", client, 18, (xdrproc_t)xdr_void, NULL);
  try("no arguments", client, Conformance_Add, (xdrproc_t)xdr_void, NULL);
  unsigned wrong = 3;
  try("no colour", client, Conformance_NextColour, (xdrproc_t)xdr_u_int, &wrong);
  Conformance_Halve_arguments beyond = {101, 0};
  try("beyond a range", client, Conformance_Halve, (xdrproc_t)xdr_Conformance_Halve_arguments, &beyond);
  Conformance_Integers_arguments wide = {128};
  try("wider than int8", client, Conformance_Integers, (xdrproc_t)xdr_Conformance_Integers_arguments, &wide);
  try("an exception", client, Conformance_Throw, (xdrproc_t)xdr_void, NULL);
  try("a value that breaks its type", client, Conformance_BadResult, (xdrproc_t)xdr_void, NULL);
  try("a death", client, Conformance_Die, (xdrproc_t)xdr_void, NULL);
  try("another version", client_of(argv, 7), Conformance_Null, (xdrproc_t)xdr_void, NULL);
  return 0;
}
