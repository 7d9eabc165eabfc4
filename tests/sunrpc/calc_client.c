/* calc_client [PORT [tcp]]: rpcgen's client, over libtirpc's UDP or TCP. Without a port it asks rpcbind, and adds. Else
   it calls each procedure, and what is not there, and prints what it was told. */
#include <stdio.h>
#include <stdlib.h>

#include "calc.h"
#include "rpcgen_client.h"

static void show_who_calls(CLIENT *client) {
  auth_destroy(client->cl_auth);
  client->cl_auth = authunix_create("c-box", 7, 8, 0, NULL);
}

static CLIENT *client_of(char **port_and_tcp, unsigned long program, unsigned long version) {
  CLIENT *client = client_at("127.0.0.1", (unsigned)atoi(port_and_tcp[0]), port_and_tcp[1] != NULL, program, version);
  show_who_calls(client);
  return client;
}

static void call_nothing(const char *what, CLIENT *client, unsigned long procedure) {
  try(what, client, procedure, (xdrproc_t)xdr_void, NULL);
}

static int add_where_rpcbind_says(void) {
  terms sum = {20, -62};
  CLIENT *client = clnt_create("127.0.0.1", CALC, CALC_V1, "udp");
  if (client == NULL) {
    clnt_pcreateerror("calc");
    return 1;
  }
  show_who_calls(client);
  int *added = add_1(&sum, client);
  printf("add: %d\n", added != NULL ? *added : 0);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 1) return add_where_rpcbind_says();
  CLIENT *client = client_of(argv + 1, CALC, CALC_V1);

  terms sum = {20, -62};
  int *added = add_1(&sum, client);
  printf("add: %d\n", added != NULL ? *added : 0);

  char bytes[1001];
  for (int i = 0; i < 1001; ++i) bytes[i] = (char)i;
  note given = {"stressed", {1001, bytes}, -5000000000LL, TRUE, 1.25};
  note *turned = turn_1(&given, client);
  if (turned != NULL) {
    int right = turned->bytes.bytes_len == 1001;
    for (int i = 0; right && i < 1001; ++i) right = turned->bytes.bytes_val[i] == bytes[1000 - i];
    printf("turn: %s %s %lld %d %g\n", turned->text, right ? "right" : "wrong", (long long)turned->number,
           (int)turned->flag, turned->real);
  }

  u_int *uid = who_1(NULL, client);
  printf("who: %u\n", uid != NULL ? *uid : 0);
  call_nothing("nothing", client, NULLPROC);
  call_nothing("no procedure", client, 99);
  call_nothing("no arguments", client, ADD);
  call_nothing("no version", client_of(argv + 1, CALC, 7), NULLPROC);
  call_nothing("no program", client_of(argv + 1, CALC + 1, 1), NULLPROC);
  return 0;
}
