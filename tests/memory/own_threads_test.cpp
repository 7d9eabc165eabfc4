// A program that asks a server for something while its own thread has no memory gets std::bad_alloc or an error, and
// nothing is left behind.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "conformance_service.h"
#include "eventually.h"
#include "holdings.h"
#include "world.h"

// glibc's function, under the name that it exports for this purpose.
extern "C" void* __libc_malloc(std::size_t size);  // NOLINT

namespace {

/// How many allocations of this thread precede the one that fails, this one included; 0: none fails.
thread_local std::uint64_t until_failure = 0;

}  // namespace

// The function that operator new calls.
extern "C" void* malloc(std::size_t size) {
  return until_failure != 0 && --until_failure == 0 ? nullptr : __libc_malloc(size);
}

namespace {

using namespace testing_lrpc;

/// Lets each allocation of `ask` fail in turn. `ask` returns whether it got what it asked for; `after` is called after
/// each failure, with false also after std::bad_alloc, and must put everything back.
void fail_each(const std::function<bool()>& ask, const std::function<void(bool got)>& after) {
  constexpr std::uint64_t kMost = 10'000;
  for (std::uint64_t number = 1; number < kMost; ++number) {
    SCOPED_TRACE("allocation " + std::to_string(number));
    bool got = false;
    until_failure = number;
    try {
      got = ask();
    } catch (const std::bad_alloc&) {
    }
    const bool none_failed = std::exchange(until_failure, 0) != 0;
    ASSERT_NO_FATAL_FAILURE(after(got));
    if (!none_failed) continue;
    EXPECT_TRUE(got);
    EXPECT_GT(number, 1U) << "it allocates nothing";
    return;
  }
  ADD_FAILURE() << "there is no end of allocations";
}

class OwnThreadWithoutMemory : public testing::Test {
 protected:
  /// A connection to the nameserver that was given up ends other requests, too; names come back with the next one.
  void export_again() {
    ASSERT_TRUE(eventually([&] {
      auto exported = Conformance::export_to(server_, kName, service_);
      if (exported) exported_ = *exported;
      return static_cast<bool>(exported);
    }));
  }
  void withdraw() { ASSERT_TRUE(exported_ && server_.withdraw(*std::exchange(exported_, std::nullopt))); }

  static constexpr const char* kName = "a.name.that.is.too.long.to.fit.into.a.string.itself";
  World world_;
  lrpc::Server server_{{.nameserver = world_.nameserver()}};
  ConformanceService service_{&server_};
  std::optional<lrpc::ExportId> exported_;
};

TEST_F(OwnThreadWithoutMemory, can_export_the_name_later) {
  fail_each(
      [&] {
        auto exported = Conformance::export_to(server_, kName, service_);
        if (exported) exported_ = *exported;
        return static_cast<bool>(exported);
      },
      [&](bool got) {
        if (!got) export_again();
        EXPECT_TRUE(world_.import(kName, {.timeout = kPatience}));
        withdraw();
      });
}

TEST_F(OwnThreadWithoutMemory, withdraws_a_name_all_the_same) {
  export_again();
  fail_each([&] { return static_cast<bool>(server_.withdraw(*exported_)); },
            [&](bool) {
              EXPECT_EQ(server_.withdraw(*exported_).code(), lrpc::Errc::invalid_argument) << "it is withdrawn";
              export_again();  // not before the nameserver has let go of it
            });
}

TEST_F(OwnThreadWithoutMemory, hangs_up_on_a_private_client_that_it_cannot_serve) {
  { EXPECT_TRUE(bind_privately(server_, service_)); }
  const Holdings before = Holdings::of();
  lrpc::UniqueFd clients;
  fail_each(
      [&] {
        auto ends = lrpc::shim::make_socket_pair().value();
        clients = std::move(ends.second);
        return static_cast<bool>(Conformance::serve_over(server_, std::move(ends.first), service_));
      },
      [&](bool got) {
        if (got) {
          EXPECT_TRUE(Conformance::Client::import_over(std::exchange(clients, {})));
        } else {
          EXPECT_TRUE(eventually([&] { return lrpc::shim::hung_up(clients.get()); }));
        }
        clients.reset();
      });
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }));
}

}  // namespace
