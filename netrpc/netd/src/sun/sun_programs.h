// Which names and which Sun RPC programs belong together: the options --sun and --sun-import.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/rpcbind.h"

namespace lrpc::netd {

/// A name of this machine that is offered as a version of a Sun RPC program.
struct SunExport {
  std::string name;
  std::uint32_t program = 0;
  std::uint32_t version = 1;
};
/// "NAME=PROGRAM" or "NAME=PROGRAM/VERSION", numbers decimal or, after 0x, hexadecimal. Errors: invalid_argument.
[[nodiscard]] Result<SunExport> parse_sun_export(const std::string& text);

/// A Sun RPC program of another host, or of this one, that clients of this machine import as NAME@HOST.
struct SunImport {
  std::string name;
  std::string host;  ///< As clients write it.
  std::uint32_t program = 0;
  std::uint32_t version = 0;  ///< 0: the major version of the client's interface; else that must be the same.
  std::uint16_t port = 0;     ///< 0: that host's rpcbind is asked. Over TCP never 0.
  netrpc::SunTransport transport = netrpc::SunTransport::udp;
};
/// "NAME@HOST[:PORT]=PROGRAM[/VERSION][,tcp]", numbers as above, and none of them 0. Errors: invalid_argument.
[[nodiscard]] Result<SunImport> parse_sun_import(const std::string& text);

}  // namespace lrpc::netd
