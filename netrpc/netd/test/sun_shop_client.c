/* sun_shop_client ADDRESS PORT [tcp]: rpcgen's client of Shop, over UDP or TCP: the types that Conformance has not.
   Prints what it was told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpcgen_client.h"
#include "shop.h"

static void reals(CLIENT *client, unsigned byte) {
  Shop_Reals_arguments in = {1.25f, -1e300, FALSE, byte};
  Shop_Reals_results *out = shop_reals_3(&in, client);
  if (out != NULL) printf("reals: %g %g %d %u\n", out->a2, out->b2, out->c2, out->d2);
}

static void turn(CLIENT *client, const char *name, Shop_Wide code) {
  Shop_Item in = {
      (char *)name, Shop_Colour_Green, {{1, 0.5f}, {-2, 1.5f}}, {TRUE, FALSE, TRUE}, {1, 2, 3, 4, (char)255}, 30, code};
  Shop_Item *out = shop_turn_3(&in, client);
  if (out == NULL) return;
  printf("turn: '%s' %d", out->name, out->colour);
  for (int i = 0; i < 2; ++i) printf(" (%d %g)", out->corners[i].x, out->corners[i].y);
  for (int i = 0; i < 3; ++i) printf(" %d", out->flags[i]);
  for (int i = 0; i < 5; ++i) printf(" %u", (unsigned char)out->block[i]);
  printf(" %u %llu\n", out->share, (unsigned long long)out->code);
}

static void join(CLIENT *client, const char *first, const char *second) {
  Shop_Join_arguments in = {(char *)first, (char *)second};
  Shop_Join_results *out = shop_join_3(&in, client);
  if (out != NULL) printf("join: '%s'\n", out->both);
}

/* Opaque of each length from 0 to 5: what follows is padded. */
static void reverse(CLIENT *client) {
  char bytes[] = "abcde";
  for (u_int length = 0; length <= 5; ++length) {
    Shop_Reverse_arguments in = {{length, bytes}};
    Shop_Reverse_results *out = shop_reverse_3(&in, client);
    if (out != NULL) printf("reverse: %u '%.*s'\n", out->data.data_len, (int)out->data.data_len, out->data.data_val);
  }
}

static void fill(CLIENT *client, unsigned count) {
  Shop_Fill_arguments in = {count, 9};
  Shop_Fill_results *out = shop_fill_3(&in, client);
  if (out != NULL) printf("fill: %u %d\n", out->data.data_len, count != 0 ? out->data.data_val[count - 1] : 0);
}

static void buy(CLIENT *client, unsigned count) {
  Shop_Buy_outcome *out = shop_buy_3(&count, client);
  if (out == NULL) return;
  if (out->status == 0) printf("buy %u: %u\n", count, out->Shop_Buy_outcome_u.results);
  if (out->status == 1)
    printf("buy %u: TooMuch %u %s\n", count, out->Shop_Buy_outcome_u.TooMuch.limit,
           out->Shop_Buy_outcome_u.TooMuch.what);
  if (out->status == 2) printf("buy %u: Closed\n", count);
}

/* A procedure without results has an answer in Sun RPC, but it may come before the procedure has run. */
static void note(CLIENT *client, unsigned what) {
  void *sent = shop_note_3(&what, client);
  u_int *noted = NULL;
  for (int tries = 0; tries < 2000 && (noted == NULL || *noted != what); ++tries) {
    if (tries != 0) usleep(10000);
    noted = shop_noted_3(NULL, client);
  }
  if (sent != NULL && noted != NULL) printf("note: %u\n", *noted);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  CLIENT *client = client_at(argv[1], (unsigned)atoi(argv[2]), argc > 3, SHOP_PROGRAM, SHOP_VERSION);
  printf("null: %s\n", shop_null_3(NULL, client) != NULL ? "done" : "failed");
  reals(client, 7);
  reals(client, 255);
  turn(client, "abcdefgh", 1);
  turn(client, "", ~0ULL);
  join(client, "ab", "c");
  join(client, "", "");
  reverse(client);
  fill(client, 5999);
  fill(client, 0);
  buy(client, 100);
  buy(client, 101);
  buy(client, 13);
  note(client, 4711);
  Shop_Reals_arguments no_byte = {0, 0, FALSE, 256};
  try("no byte", client, Shop_Reals, (xdrproc_t)xdr_Shop_Reals_arguments, &no_byte);
  Shop_Item no_code = {"", Shop_Colour_Red, {{0, 0}, {0, 0}}, {FALSE, FALSE, FALSE}, {0}, 0, 2};
  try("no value of a wide enum", client, Shop_Turn, (xdrproc_t)xdr_Shop_Item, &no_code);
  unsigned rate = 101;
  try("a result beyond its range", client, Shop_Rate, (xdrproc_t)xdr_u_int, &rate);
  return 0;
}
