// The answers of other hosts' rpcbinds about their programs' ports, shared by all bindings: so an rpcbind that names
// another port each time is asked seldom, and leads to few ports. Pure: time is passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/rpcbind.h"

namespace lrpc::sun {

/// One thread at a time. Work is bounded by what was asked within the last kKept. Throws std::bad_alloc alone.
class FoundPorts {
 public:
  /// How long an answer serves all bindings.
  static constexpr netrpc::Duration kFresh = std::chrono::seconds(1);
  /// How long a port counts after it was named: longer than the channels to it are kept.
  static constexpr netrpc::Duration kKept = std::chrono::minutes(2);
  /// The most ports that a host may name for a program within kKept.
  static constexpr std::size_t kMostPorts = 8;

  struct Program {
    netrpc::HostAddress host;
    std::uint32_t program = 0;
    netrpc::SunTransport transport = netrpc::SunTransport::udp;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the zero of a three-way comparison for a pointer
    friend auto operator<=>(const Program&, const Program&) = default;
  };
  struct Answer {
    std::uint16_t port = 0;
    Errc why_not = Errc::ok;  ///< Why there is no port: name_unknown, for example.
    friend bool operator==(const Answer&, const Answer&) = default;
  };
  /// The answer of less than kFresh ago. nullopt: ask rpcbind.
  [[nodiscard]] std::optional<Answer> fresh(const Program& program, std::uint32_t version, netrpc::Time now) const;
  /// Notes what rpcbind has answered, or that its answer makes no sense. False: it has named too many ports, and this
  /// one may not be used; that is noted as remote_unavailable.
  [[nodiscard]] bool note(const Program& program, std::uint32_t version, Answer answer, netrpc::Time now);

 private:
  struct Noted {
    Answer answer;
    netrpc::Time at{};
  };
  struct Said {
    std::map<std::uint32_t, Noted> by_version;
    std::map<std::uint16_t, netrpc::Time> ports;
  };
  void forget(netrpc::Time now);

  std::map<Program, Said> said_;
};

}  // namespace lrpc::sun
