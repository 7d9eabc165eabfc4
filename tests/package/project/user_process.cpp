// A program of the network's libraries, with the installed package: a user process that finds no graph.
#include "lrpc/netrpc/user/user_process.h"

#include <cstdio>

#include "lrpc/netrpc/all_kinds.h"

int main() {
  const lrpc::netrpc::ProtocolKinds kinds = lrpc::netrpc::all_kinds();
  const auto made = lrpc::netuser::UserProcess::create("echo", {.binding = {.nameserver = "/nowhere"}});
  std::puts(made ? "there is a graph" : made.error().message().c_str());
  return kinds.find("UDP") != nullptr && !made ? 0 : 1;
}
