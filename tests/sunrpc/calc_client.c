/* calc_client [PORT [tcp]]: rpcgen's client, over libtirpc's UDP or TCP. Without a port it asks rpcbind, and adds. Else
   it calls each procedure, and what is not there, and prints what it was told. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc.h"

static int over_tcp;

static CLIENT *client_of(unsigned port, unsigned long program, unsigned long version) {
  static int socket_number;
  struct sockaddr_in address;
  struct timeval again = {1, 0};
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socket_number = RPC_ANYSOCK;
  CLIENT *client = over_tcp ? clnttcp_create(&address, program, version, &socket_number, 0, 0)
                            : clntudp_create(&address, program, version, again, &socket_number);
  if (client == NULL) exit(1);
  auth_destroy(client->cl_auth);
  client->cl_auth = authunix_create("c-box", 7, 8, 0, NULL);
  return client;
}

static void try(const char *what, CLIENT *client, unsigned long procedure) {
  struct timeval patience = {240, 0};
  printf("%s: %s\n", what,
         clnt_sperrno(clnt_call(client, procedure, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void, NULL, patience)));
}

static int add_where_rpcbind_says(void) {
  terms sum = {20, -62};
  CLIENT *client = clnt_create("127.0.0.1", CALC, CALC_V1, "udp");
  if (client == NULL) {
    clnt_pcreateerror("calc");
    return 1;
  }
  auth_destroy(client->cl_auth);
  client->cl_auth = authunix_create("c-box", 7, 8, 0, NULL);
  int *added = add_1(&sum, client);
  printf("add: %d\n", added != NULL ? *added : 0);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 1) return add_where_rpcbind_says();
  unsigned port = (unsigned)atoi(argv[1]);
  over_tcp = argc > 2;
  CLIENT *client = client_of(port, CALC, CALC_V1);
  struct timeval patience = {240, 0};
  clnt_control(client, CLSET_TIMEOUT, (char *)&patience);

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
  try("nothing", client, NULLPROC);
  try("no procedure", client, 99);
  try("no arguments", client, ADD);
  try("no version", client_of(port, CALC, 7), NULLPROC);
  try("no program", client_of(port, CALC + 1, 1), NULLPROC);
  return 0;
}
