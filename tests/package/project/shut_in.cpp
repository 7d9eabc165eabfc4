// A program that shuts itself in, with the installed package.
#include <cstdio>

#include "lrpc/sandbox.h"

int main() {
  const auto entered = lrpc::sandbox::enter();
  std::printf("%s\n", entered ? entered->text().c_str() : entered.error().message().c_str());
  return entered ? 0 : 1;
}
