/* What the tests' clients of rpcgen and libtirpc have in common. */
#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/rpc.h>

/* A client of a program at an address, over UDP or TCP. Port 0: asks rpcbind. On failure the process ends. */
static CLIENT* client_at(const char* host, unsigned port, int over_tcp, unsigned long program, unsigned long version) {
  struct sockaddr_in address;
  struct timeval again = {1, 0}, patience = {240, 0};
  int socket_number = RPC_ANYSOCK;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)port);
  inet_pton(AF_INET, host, &address.sin_addr);
  CLIENT* client = over_tcp ? clnttcp_create(&address, program, version, &socket_number, 0, 0)
                            : clntudp_bufcreate(&address, program, version, again, &socket_number, 60000, 60000);
  if (client == NULL) exit(1);
  clnt_control(client, CLSET_TIMEOUT, (char*)&patience);
  return client;
}

/* Makes a call, ignores its results, and prints its outcome. */
static void try(const char* what, CLIENT* client, unsigned long procedure, xdrproc_t put, void* arguments) {
  struct timeval patience = {240, 0};
  printf("%s: %s\n", what,
         clnt_sperrno(clnt_call(client, procedure, put, arguments, (xdrproc_t)xdr_void, NULL, patience)));
}
