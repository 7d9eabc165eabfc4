#include "sun/sun_programs.h"

#include <optional>
#include <string_view>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "netrpc/graph/options.h"

namespace lrpc::netd {
namespace {

std::optional<std::uint32_t> number_in(std::string_view text) {
  const auto number = netrpc::parse_number(text);
  return number && *number <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

/// Removes the last `mark` and what follows from `text`. Returns what follows; nullopt: there is no mark.
std::optional<std::string_view> take_behind(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

bool may_be_named(std::string_view name) { return shim::valid_name(name) && !name.starts_with(shim::kOwnPrefix); }

/// "PROGRAM[/VERSION]"; without a version `version` stays as it is. False: malformed.
bool read_program(std::string_view text, std::uint32_t& program, std::uint32_t& version) {
  const auto behind = take_behind(text, '/');
  const auto given = behind ? number_in(*behind) : version;
  const auto number = number_in(text);
  if (!given || !number || *number == 0) return false;
  program = *number;
  version = *given;
  return true;
}

}  // namespace

Result<SunExport> parse_sun_export(const std::string& text) {
  SunExport parsed;
  std::string_view name = text;
  const auto program = take_behind(name, '=');
  parsed.name = name;
  if (program && may_be_named(name) && read_program(*program, parsed.program, parsed.version)) return parsed;
  return Error{Errc::invalid_argument, "'" + text + "': write NAME=PROGRAM or NAME=PROGRAM/VERSION"};
}

Result<SunImport> parse_sun_import(const std::string& text) {
  const Error wrong{Errc::invalid_argument, "'" + text + "': write NAME@HOST[:PORT]=PROGRAM[/VERSION][,tcp]"};
  SunImport parsed;
  std::string_view name = text;
  auto program = take_behind(name, '=');
  if (!program) return wrong;
  if (program->ends_with(",tcp")) {
    parsed.transport = netrpc::SunTransport::tcp;
    program->remove_suffix(4);
  }
  auto host = take_behind(name, '@');
  const bool versioned = program->find('/') != std::string_view::npos;
  if (!host || !may_be_named(name) || !read_program(*program, parsed.program, parsed.version)) return wrong;
  if (versioned && parsed.version == 0) return wrong;  // 0 means none
  if (const auto port = take_behind(*host, ':')) {
    const auto number = number_in(*port);
    if (!number || *number == 0 || *number > 0xffff) return wrong;
    parsed.port = static_cast<std::uint16_t>(*number);
  }
  if (host->empty() || host->size() > shim::kMaxNameLength) return wrong;
  parsed.name = name;
  parsed.host = *host;
  if (parsed.transport == netrpc::SunTransport::tcp && parsed.port == 0)
    return Error{Errc::invalid_argument,
                 "'" + text + "': over TCP write the port, too; rpcbind is asked for UDP's alone"};
  return parsed;
}

}  // namespace lrpc::netd
