// Where the graph and the Sun RPC programs of this machine meet: requests come up from SUN_SELECTs and are served in
// threads of their own, by servers that know nothing of Sun RPC (netrpc/sun).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/host.h"
#include "served_program.h"
#include "sun/sun_programs.h"
#include "workers.h"

namespace lrpc::netd {

class SunService final : public netrpc::Protocol {
 public:
  struct Options {
    std::vector<SunExport> exports;             ///< No two of them have the same program and version.
    std::string nameserver;                     ///< As DaemonOptions has it.
    std::size_t max_bindings = 1024;            ///< Of all of them together, at one time.
    std::function<void(std::string)> notice{};  ///< For the log. Any thread.
  };
  /// `below`: SUN_SELECTs. Inside the monitor.
  SunService(netrpc::Host& host, std::vector<netrpc::Protocol*> below, const Options& options);
  ~SunService() override;

  /// Opens whatever lies below; requests are refused until serve(). Inside the monitor. Errors: those of open_enable().
  Status enable();
  /// Begins to serve: from here on this process may call in the name of other hosts. Not inside the monitor.
  void serve();
  /// No request is being served when this returns, and none will be. Not inside the monitor.
  void stop_serving() noexcept;

  void call_demux(netrpc::Session& lower, netrpc::Message request) noexcept override;

 private:
  /// A program of this machine, with threads and a share of the buffers of its own, so that it takes none from the
  /// others.
  struct Served {
    SunExport what;
    sun::ServedProgram program;
    netrpc::HostShares buffers;  ///< Bytes of the requests that are waiting or being served. Inside the monitor.
    Workers workers;
    Served(const SunExport& what, sun::ServedOptions options, std::size_t threads, SunService& service);
  };
  void serve_in_worker(Served& served, Command command) noexcept;
  void sweep_later() noexcept;
  /// Drops what no worker has taken.
  void drop_left() noexcept;

  struct Enabled {
    netrpc::Protocol* below = nullptr;
    netrpc::ParticipantSet participants;
  };

  const std::vector<netrpc::Protocol*> below_;
  std::vector<std::unique_ptr<Served>> served_;
  std::vector<Enabled> enabled_;
  bool serving_ = false;
  netrpc::Event sweep_;
};

}  // namespace lrpc::netd
