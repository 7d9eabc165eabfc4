// The addresses and protocol numbers in the tests of devices.
#pragma once

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc::test {

constexpr ProtocolNumber kEcho = protocol_numbers::kFirstOfTests;
constexpr HostAddress kA{0x0a000001};
constexpr HostAddress kB{0x0a000002};

}  // namespace lrpc::netrpc::test
