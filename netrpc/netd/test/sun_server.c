/* sun_server udp|tcp PORT VERSION [register]: rpcgen's server of Shop, under a version of the program. rpcbind is told
   only with "register". Prints a line, and serves until it is killed, four minutes at most. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rpc/pmap_clnt.h>

#include "shop.h"

void shop_program_3(struct svc_req *request, SVCXPRT *transport);

void *shop_null_3_svc(void *argument, struct svc_req *request) {
  static char nothing;
  return &nothing;
}

Shop_Integers_results *shop_integers_3_svc(Shop_Integers_arguments *in, struct svc_req *request) {
  static Shop_Integers_results out;
  out.a2 = -1 - in->a, out.b2 = 255 - in->b, out.c2 = -1 - in->c, out.d2 = 65535 - in->d;
  out.e2 = ~in->e, out.f2 = ~in->f, out.g2 = ~in->g, out.h2 = ~in->h;
  return &out;
}

Shop_Reals_results *shop_reals_3_svc(Shop_Reals_arguments *in, struct svc_req *request) {
  static Shop_Reals_results out;
  out.a2 = -in->a, out.b2 = -in->b, out.c2 = !in->c, out.d2 = 255 - in->d;
  return &out;
}

Shop_Item *shop_turn_3_svc(Shop_Item *in, struct svc_req *request) {
  static Shop_Item out;
  static char name[9];
  size_t length = strlen(in->name);
  for (size_t i = 0; i < length; ++i) name[i] = in->name[length - 1 - i];
  name[length] = 0;
  out.name = name;
  out.colour = in->colour == Shop_Colour_Blue ? Shop_Colour_Red : 2 * in->colour;
  for (int i = 0; i < 2; ++i) out.corners[i].x = -in->corners[1 - i].x, out.corners[i].y = -in->corners[1 - i].y;
  for (int i = 0; i < 3; ++i) out.flags[i] = !in->flags[i];
  for (int i = 0; i < 5; ++i) out.block[i] = in->block[4 - i];
  out.share = 100 - in->share;
  out.code = in->code == 1 ? ~0ULL : 1;
  return &out;
}

Shop_Join_results *shop_join_3_svc(Shop_Join_arguments *in, struct svc_req *request) {
  static char both[4001];
  static Shop_Join_results out = {both};
  strcpy(both, in->first);
  strcat(both, in->second);
  return &out;
}

Shop_Fill_results *shop_fill_3_svc(Shop_Fill_arguments *in, struct svc_req *request) {
  static char bytes[6000];
  static Shop_Fill_results out;
  memset(bytes, (int)in->value, sizeof bytes);
  out.data.data_len = in->count;
  out.data.data_val = bytes;
  return &out;
}

Shop_Reverse_results *shop_reverse_3_svc(Shop_Reverse_arguments *in, struct svc_req *request) {
  static char bytes[6000];
  static Shop_Reverse_results out;
  u_int length = in->data.data_len;
  for (u_int i = 0; i < length; ++i) bytes[i] = in->data.data_val[length - 1 - i];
  out.data.data_len = length;
  out.data.data_val = bytes;
  return &out;
}

Shop_Buy_outcome *shop_buy_3_svc(u_int *count, struct svc_req *request) {
  static Shop_Buy_outcome out;
  out.status = *count == 13 ? 2 : *count > 100 ? 1 : 0;
  if (out.status == 0) out.Shop_Buy_outcome_u.results = 3 * *count;
  if (out.status == 1) {
    out.Shop_Buy_outcome_u.TooMuch.limit = 100;
    out.Shop_Buy_outcome_u.TooMuch.what = "bread";
  }
  return &out;
}

Shop_Percent *shop_rate_3_svc(u_int *value, struct svc_req *request) {
  static Shop_Percent out;
  out = *value;
  return &out;
}

static u_int noted;
void *shop_note_3_svc(u_int *what, struct svc_req *request) {
  noted = *what;
  return &noted;
}
u_int *shop_noted_3_svc(void *argument, struct svc_req *request) { return &noted; }

/* fail() has taken its calls. */
bool_t *shop_fail_3_svc(Shop_Failure *how, struct svc_req *request) { return NULL; }

static bool_t put_long(XDR *xdr, void *value) {
  return xdr_u_int(xdr, value) && xdr_u_int(xdr, value);
}

static void fail(SVCXPRT *transport) {
  Shop_Failure how;
  u_int seven = 7;
  if (!svc_getargs(transport, (xdrproc_t)xdr_Shop_Failure, (caddr_t)&how)) return svcerr_decode(transport);
  switch (how) {
    case Shop_Failure_ProgUnavail: return svcerr_noprog(transport);
    case Shop_Failure_ProgMismatch: return svcerr_progvers(transport, 4, 6);
    case Shop_Failure_ProcUnavail: return svcerr_noproc(transport);
    case Shop_Failure_GarbageArgs: return svcerr_decode(transport);
    case Shop_Failure_SystemErr: return svcerr_systemerr(transport);
    case Shop_Failure_AuthError: return svcerr_auth(transport, AUTH_TOOWEAK);
    case Shop_Failure_TooManyResults: svc_sendreply(transport, (xdrproc_t)put_long, (caddr_t)&seven); return;
    case Shop_Failure_NoResults: svc_sendreply(transport, (xdrproc_t)xdr_void, NULL); return;
    case Shop_Failure_NoValue: svc_sendreply(transport, (xdrproc_t)xdr_u_int, (caddr_t)&seven); return;
    case Shop_Failure_Death: exit(0);
    default: ++noted; return; /* says nothing */
  }
}

static void serve(struct svc_req *request, SVCXPRT *transport) {
  if (request->rq_proc == Shop_Fail) return fail(transport);
  shop_program_3(request, transport);
}

int main(int argc, char **argv) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  if (argc < 4) return 2;
  int tcp = strcmp(argv[1], "tcp") == 0;
  int listening = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
  int registers = argc > 4 ? (tcp ? IPPROTO_TCP : IPPROTO_UDP) : 0;
  int yes = 1;
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(argv[2]));
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  alarm(240);
  if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0) return 1;
  if (tcp && listen(listening, 8) != 0) return 1;
  if (registers) pmap_unset(SHOP_PROGRAM, (u_long)atoi(argv[3])); /* of a server before this one */
  SVCXPRT *transport = tcp ? svctcp_create(listening, 0, 0) : svcudp_create(listening);
  if (transport == NULL || !svc_register(transport, SHOP_PROGRAM, (u_long)atoi(argv[3]), serve, registers)) return 1;
  printf("serves\n");
  fflush(stdout);
  svc_run();
  return 1;
}
