/* calc_server [register | tcp]: rpcgen's server, over libtirpc's UDP or TCP. Prints its process and its port, which
   rpcbind is told only with "register", and serves until it is killed, four minutes at most. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calc.h"

void calc_1(struct svc_req *request, SVCXPRT *transport);

int *add_1_svc(terms *argument, struct svc_req *request) {
  static int sum;
  (void)request;
  sum = argument->a + argument->b;
  return &sum;
}

note *turn_1_svc(note *argument, struct svc_req *request) {
  static note turned;
  static char text[101];
  static char bytes[9000];
  size_t length = strlen(argument->text);
  (void)request;
  for (size_t i = 0; i < length; ++i) text[i] = argument->text[length - 1 - i];
  text[length] = 0;
  for (u_int i = 0; i < argument->bytes.bytes_len; ++i)
    bytes[i] = argument->bytes.bytes_val[argument->bytes.bytes_len - 1 - i];
  turned.text = text;
  turned.bytes.bytes_len = argument->bytes.bytes_len;
  turned.bytes.bytes_val = bytes;
  turned.number = -argument->number;
  turned.flag = !argument->flag;
  turned.real = 2 * argument->real;
  return &turned;
}

u_int *who_1_svc(void *argument, struct svc_req *request) {
  static u_int uid;
  (void)argument;
  uid = request->rq_cred.oa_flavor == AUTH_SYS ? (u_int)((struct authunix_parms *)request->rq_clntcred)->aup_uid : 0;
  return &uid;
}

int main(int argc, char **argv) {
  int protocol = argc > 1 && strcmp(argv[1], "register") == 0 ? IPPROTO_UDP : 0;
  int tcp = argc > 1 && strcmp(argv[1], "tcp") == 0;
  SVCXPRT *transport = tcp ? svctcp_create(RPC_ANYSOCK, 0, 0) : svcudp_create(RPC_ANYSOCK);
  alarm(240);
  if (transport == NULL || !svc_register(transport, CALC, CALC_V1, calc_1, protocol)) return 1;
  printf("%d %d\n", (int)getpid(), (int)transport->xp_port);
  fflush(stdout);
  svc_run();
  return 1;
}
