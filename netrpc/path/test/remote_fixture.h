// Two hosts in this process, joined by a fake network, each with a nameserver and a broker; one of them has a server.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "temporary_directory.h"
#include "two_hosts.h"

namespace testing_netpath {

using testing_lrpc::eventually;

using lrpc::Errc;
using testing_lrpc::ConformanceService;

inline constexpr HostAddress kHere = 0x0a00'0001;   // 10.0.0.1
inline constexpr HostAddress kThere = 0x0a00'0002;  // 10.0.0.2
inline constexpr milliseconds kKeepalive{50};
/// A timeout against waiting for ever.
inline constexpr milliseconds kPatience{240'000};

class TwoHosts : public testing::Test {
 protected:
  TwoHosts() {
    here_ = std::make_unique<Host>(network_, kHere, directory_ / "here.sock");
    there_ = std::make_unique<Host>(network_, kThere, directory_ / "there.sock");
    here_->start_broker({.keepalive = kKeepalive, .boot_id = 0});
    there_->start_broker(there_options());
    server_ = std::make_unique<lrpc::Server>(lrpc::ServerOptions{.nameserver = there_->socket()});
    EXPECT_TRUE(Conformance::export_to(*server_, "files", service_, options_));
    EXPECT_TRUE(Conformance::export_to(*server_, "private", service_));
  }
  ~TwoHosts() override {
    server_.reset();
    here_.reset();
    there_.reset();
  }

  static BrokerOptions there_options() {
    BrokerOptions options;
    options.exported = [](std::string_view name) { return name != "private"; };
    options.keepalive = kKeepalive;
    return options;
  }
  [[nodiscard]] lrpc::ImportOptions import_options() const { return {.nameserver = here_->socket()}; }
  [[nodiscard]] lrpc::Result<Conformance::Client> import(const std::string& name = "files@10.0.0.2") const {
    return Conformance::Client::import(name, import_options());
  }

  Network network_;
  testing_lrpc::TemporaryDirectory directory_;
  std::unique_ptr<Host> here_;
  std::unique_ptr<Host> there_;
  ConformanceService service_;
  lrpc::ExportOptions options_;
  std::unique_ptr<lrpc::Server> server_;
};

inline std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

}  // namespace testing_netpath
