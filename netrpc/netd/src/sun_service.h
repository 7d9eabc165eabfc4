// Where the graph and the Sun RPC programs of this machine meet: requests come up from SUN_SELECTs and are served in
// threads of their own, by servers that know nothing of Sun RPC (netrpc/sun).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/host.h"
#include "served_program.h"
#include "workers.h"

namespace lrpc::netd {

/// A name of this machine as a version of a Sun RPC program.
struct SunExport {
  std::string name;
  std::uint32_t program = 0;
  std::uint32_t version = 1;
};
/// "NAME=PROGRAM" or "NAME=PROGRAM/VERSION", numbers as in C. Errors: invalid_argument.
[[nodiscard]] Result<SunExport> parse_sun_export(const std::string& text);

class SunService final : public netrpc::Protocol {
 public:
  struct Options {
    std::vector<SunExport> exports;
    std::string nameserver;                     ///< As DaemonOptions has it.
    std::function<void(std::string)> notice{};  ///< For the log. Any thread.
  };
  /// `below`: SUN_SELECTs. Inside the monitor.
  SunService(netrpc::Host& host, std::vector<netrpc::Protocol*> below, const Options& options);
  ~SunService() override;

  /// Opens whatever lies below; requests are refused until serve(). Inside the monitor. Errors: those of open_enable();
  /// name_taken: two exports are one program.
  Status enable();
  /// From here on this process may call in the name of other hosts. Not inside the monitor.
  void serve();
  /// No request is being served when this returns, and none will be. Not inside the monitor.
  void stop_serving() noexcept;

  void call_demux(netrpc::Session& lower, netrpc::Message request) noexcept override;

 private:
  static constexpr std::size_t kWorkers = 64;
  static constexpr std::uint16_t kSweep = 0xffff;  ///< In the place of an export's index.
  struct Served {
    SunExport what;
    std::unique_ptr<sun::ServedProgram> program;
  };
  void serve_in_worker(Command command) noexcept;
  void sweep_later() noexcept;

  struct Enabled {
    netrpc::Protocol* below = nullptr;
    netrpc::ParticipantSet participants;
  };

  const std::vector<netrpc::Protocol*> below_;
  std::vector<Served> served_;
  std::vector<Enabled> enabled_;
  bool serving_ = false;
  netrpc::Event sweep_;
  Workers workers_;
};

}  // namespace lrpc::netd
