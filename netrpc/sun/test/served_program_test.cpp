// A server that knows nothing of Sun RPC, called for other hosts with XDR: which callers it sees, and for how long.
#include "served_program.h"

#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "remote_fixture.h"

namespace lrpc::sun {
namespace {

using netrpc::XdrWriter;
using std::chrono::milliseconds;
using testing_lrpc::eventually;

constexpr std::uint32_t kAdd = 2;
constexpr std::uint32_t kOpen = 18;
constexpr std::uint32_t kSleepFor = 25;

class ServedProgramTest : public testing_netpath::TwoHosts {
 protected:
  ServedProgramTest() {
    options.name = "counted";
    options.version = 2;
    options.nameserver = there_->socket();
    options.notice = [this](std::string text) { notices.push_back(std::move(text)); };
    export_options.authorise_remote = [this](const shim::Principal& from) {
      const std::lock_guard lock(mutex);
      ++bindings_of[from.host];
      return Status();
    };
    start();
  }
  void start() {
    server_options.nameserver = there_->socket();
    server = std::make_unique<Server>(server_options);
    EXPECT_TRUE(Conformance::export_to(*server, "counted", service_, export_options));
  }
  static shim::Principal host(std::uint32_t address) { return {.host = address}; }
  Errc call(ServedProgram& program, std::uint32_t from, std::uint32_t number, std::span<const std::byte> arguments,
            milliseconds limit = std::chrono::minutes(4)) {
    return program.call(host(from), number, arguments, ServedProgram::Clock::now() + limit, work);
  }
  Errc add(ServedProgram& program, std::uint32_t from) {
    const Errc outcome = call(program, from, kAdd, XdrWriter().integer(40).integer(2).bytes());
    if (outcome == Errc::ok) {
      EXPECT_EQ(work.results.bytes(), XdrWriter().integer(42).bytes());
    }
    return outcome;
  }
  [[nodiscard]] std::size_t bindings() const { return server->statistics().bindings; }

  ServedOptions options;
  ServerOptions server_options;
  std::vector<std::string> notices;
  ExportOptions export_options;
  std::mutex mutex;
  std::map<std::uint32_t, int> bindings_of;
  std::unique_ptr<Server> server;
  ServedProgram::Work work;
};

TEST(ServedWork, of_a_large_call_is_freed_and_that_of_others_kept) {
  using Work = ServedProgram::Work;
  Work work;
  work.packed.resize(Work::kKept / 2);
  work.shed();
  EXPECT_EQ(work.packed.size(), Work::kKept / 2);
  work.arguments.resize(Work::kKept);
  work.shed();
  EXPECT_EQ(work.kept(), 0U);
}

TEST_F(ServedProgramTest, each_host_has_a_binding_of_its_own_and_the_server_knows_it) {
  ServedProgram program(options);
  for (int i = 0; i < 3; ++i)
    for (const std::uint32_t from : {0x0a000007U, 0x0a000008U}) EXPECT_EQ(add(program, from), Errc::ok);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(bindings_of, (std::map<std::uint32_t, int>{{0x0a000007, 1}, {0x0a000008, 1}}));
}

TEST_F(ServedProgramTest, a_host_that_is_refused_for_now_does_not_take_the_bindings_of_others) {
  export_options.authorise_remote = [this](const shim::Principal& from) {
    const std::lock_guard lock(mutex);
    ++bindings_of[from.host];
    return from.host == 0x0a000007 ? Status(Errc::limit_reached) : Status();
  };
  server.reset();
  start();
  ServedProgram program(options);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(add(program, 0x0a000008), Errc::ok);
    EXPECT_NE(add(program, 0x0a000007), Errc::ok);
  }
  const std::lock_guard lock(mutex);
  EXPECT_LE(bindings_of[0x0a000008], 2) << "the first refusal may be for want of room";
}

TEST_F(ServedProgramTest, a_host_may_be_refused) {
  export_options.authorise_remote = [](const shim::Principal&) { return Status(Errc::not_permitted); };
  server.reset();
  start();
  ServedProgram program(options);
  EXPECT_EQ(add(program, 7), Errc::call_failed);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(notices.front().starts_with("'counted' cannot be called by Sun RPC: ")) << notices.front();
}

TEST_F(ServedProgramTest, beyond_the_limit_the_host_that_has_not_called_for_the_longest_time_loses_its_binding) {
  options.max_bindings = 2;
  ServedProgram program(options);
  for (const std::uint32_t from : {1U, 2U, 1U, 3U, 1U}) EXPECT_EQ(add(program, from), Errc::ok);
  EXPECT_TRUE(eventually([&] { return bindings() == 2; })) << bindings();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(bindings_of, (std::map<std::uint32_t, int>{{1, 1}, {2, 1}, {3, 1}}));
}

TEST_F(ServedProgramTest, hosts_that_call_once_take_the_binding_of_none_that_calls_again) {
  options.max_bindings = 4;
  ServedProgram program(options);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(add(program, 1), Errc::ok);
  for (std::uint32_t forged = 100; forged < 110; ++forged) EXPECT_EQ(add(program, forged), Errc::ok);
  EXPECT_EQ(add(program, 1), Errc::ok);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(bindings_of[1], 1);
}

TEST_F(ServedProgramTest, hosts_that_call_again_leave_half_of_the_bindings_to_new_ones) {
  options.max_bindings = 4;
  ServedProgram program(options);
  for (std::uint32_t from = 1; from <= 4; ++from)
    for (int i = 0; i < 2; ++i) EXPECT_EQ(add(program, from), Errc::ok);
  for (const std::uint32_t from : {5U, 6U, 5U, 6U}) EXPECT_EQ(add(program, from), Errc::ok);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(bindings_of, (std::map<std::uint32_t, int>{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}));
}

TEST_F(ServedProgramTest, where_the_server_has_room_for_no_more_a_new_host_takes_the_place_of_another) {
  server.reset();
  server_options.max_bindings = 2;
  start();
  ServedProgram program(options);
  for (std::uint32_t from = 1; from <= 5; ++from) EXPECT_EQ(add(program, from), Errc::ok) << from;
  EXPECT_EQ(notices, std::vector<std::string>());
}

TEST_F(ServedProgramTest, bindings_that_nobody_uses_end) {
  ServedProgram program(options);
  EXPECT_EQ(add(program, 1), Errc::ok);
  program.sweep(ServedProgram::Clock::now());
  EXPECT_EQ(bindings(), 1U);
  program.sweep(ServedProgram::Clock::now() + options.forget + milliseconds(1));
  EXPECT_TRUE(eventually([&] { return bindings() == 0; }));
  EXPECT_EQ(add(program, 1), Errc::ok);
}

TEST_F(ServedProgramTest, what_cannot_be_called_is_said) {
  ServedProgram program(options);
  EXPECT_EQ(call(program, 1, 0, {}), Errc::bad_procedure);
  EXPECT_EQ(call(program, 1, 1000, {}), Errc::bad_procedure);
  EXPECT_EQ(call(program, 1, kOpen, XdrWriter().hyper(1).bytes()), Errc::bad_procedure);
  EXPECT_EQ(call(program, 1, kAdd, XdrWriter().word(1).bytes()), Errc::argument_out_of_range);
  ServedOptions nobody = options;
  nobody.name = "nobody";
  ServedProgram missing(nobody);
  EXPECT_EQ(add(missing, 1), Errc::name_unknown);
  EXPECT_EQ(notices, std::vector<std::string>());
}

TEST_F(ServedProgramTest, another_version_is_refused_and_told_once) {
  options.version = 1;
  ServedProgram program(options);
  EXPECT_EQ(add(program, 1), Errc::call_failed);
  EXPECT_EQ(add(program, 2), Errc::call_failed);
  EXPECT_EQ(notices, (std::vector<std::string>{"'counted' cannot be called by Sun RPC: its interface has version 2, "
                                               "and the Sun RPC program version 1"}));
}

TEST_F(ServedProgramTest, a_server_that_comes_again_is_found_again) {
  ServedProgram program(options);
  EXPECT_EQ(add(program, 1), Errc::ok);
  server.reset();
  EXPECT_TRUE(eventually([&] { return add(program, 1) == Errc::name_unknown; }));
  start();
  EXPECT_EQ(add(program, 1), Errc::ok);
}

TEST_F(ServedProgramTest, who_waits_behind_an_import_that_hangs_gives_up_in_time) {
  std::latch asked{1};
  std::latch answer{1};
  export_options.authorise_remote = [&](const shim::Principal& from) {
    if (from.host != 1) return Status();
    asked.count_down();
    answer.wait();
    return Status();
  };
  server.reset();
  start();
  ServedProgram program(options);
  std::thread first([&] {
    ServedProgram::Work own;
    const auto deadline = ServedProgram::Clock::now() + std::chrono::minutes(4);
    (void)program.call(host(1), kAdd, XdrWriter().integer(1).integer(2).bytes(), deadline, own);
  });
  asked.wait();
  EXPECT_EQ(call(program, 2, kAdd, XdrWriter().integer(1).integer(2).bytes(), milliseconds(20)), Errc::call_failed);
  EXPECT_EQ(notices,
            std::vector<std::string>{"'counted' cannot be called by Sun RPC: another host's import of it takes "
                                     "too long"});
  answer.count_down();
  first.join();
  EXPECT_TRUE(eventually([&] { return add(program, 2) == Errc::ok; }));
}

/// A service whose SleepFor lasts until `woken` is counted down.
struct Sleeper : testing_lrpc::ConformanceService {
  void SleepFor(CallContext&, std::uint32_t) { woken.wait(); }
  std::latch woken{1};
};

TEST_F(ServedProgramTest, a_call_ends_with_its_limit) {
  Sleeper sleeper;
  ASSERT_TRUE(Conformance::export_to(*server, "sleeper", sleeper, export_options));
  options.name = "sleeper";
  ServedProgram program(options);
  EXPECT_EQ(call(program, 1, kSleepFor, XdrWriter().word(0).bytes(), milliseconds(20)), Errc::call_failed);
  sleeper.woken.count_down();
  server.reset();
}

}  // namespace
}  // namespace lrpc::sun
