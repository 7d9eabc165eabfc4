// rpcbind's messages, byte by byte, and how malformed bytes are handled.
#include "netrpc/rpcbind/messages.h"

#include <gtest/gtest.h>

#include "lrpc/netrpc/xdr.h"

namespace lrpc::netrpc::rpcbind {
namespace {

constexpr HostAddress kHost{0x7f000001};
constexpr SunProgram kServed{.program = 0x20000099, .version = 3, .port = 24211, .host = kHost};

TEST(RpcbindMessages, universal_addresses_name_a_host_and_a_port) {
  EXPECT_EQ(universal_address(kHost, 24211), "127.0.0.1.94.147");
  EXPECT_EQ(universal_address({}, 111), "0.0.0.0.0.111");
  EXPECT_EQ(port_of("127.0.0.1.94.147"), 24211);
  EXPECT_EQ(port_of("255.255.255.255.255.255"), 65535);
  EXPECT_EQ(port_of(""), 0);
  for (const char* const wrong :
       {"1", "1.2.3.4.5", "1.2.3.4.5.", "1.2.3.4.5.256", "1.2.3.4.5.6.7", "1.2.3.4.5.6 ", " 1.2.3.4.5.6",
        "1.2.3.4.-5.6", "1.2.3.4.5.+6", "::1.0.111", "1,2,3,4,5,6", "1.2.3.4..6", "1.2.3.4.99999999999.6"})
    EXPECT_EQ(port_of(wrong), std::nullopt) << wrong;
}

TEST(RpcbindMessages, a_question_for_a_port_is_that_of_its_version) {
  EXPECT_EQ(lookup(2, 7, 3), XdrWriter().word(7).word(3).word(17).word(0).bytes());
  EXPECT_EQ(lookup(2, 7, 3, SunTransport::tcp), XdrWriter().word(7).word(3).word(6).word(0).bytes());
  for (const std::uint32_t version : {3U, 4U}) {
    EXPECT_EQ(lookup(version, 7, 3), XdrWriter().word(7).word(3).text("udp").text("").text("").bytes());
    EXPECT_EQ(lookup(version, 7, 3, SunTransport::tcp),
              XdrWriter().word(7).word(3).text("tcp").text("").text("").bytes());
  }
}

TEST(RpcbindMessages, only_a_port_or_an_address_is_an_answer) {
  EXPECT_EQ(found(2, XdrWriter().word(24211).bytes()), 24211);
  EXPECT_EQ(found(2, XdrWriter().word(0).bytes()), 0);
  EXPECT_EQ(found(2, XdrWriter().word(65536).bytes()), std::nullopt);
  EXPECT_EQ(found(2, XdrWriter().word(1).word(1).bytes()), std::nullopt);
  EXPECT_EQ(found(2, {}), std::nullopt);
  const std::vector<std::byte> answer = XdrWriter().text("10.0.0.1.94.147").bytes();
  EXPECT_EQ(found(3, answer), 24211);
  EXPECT_EQ(found(4, XdrWriter().text("").bytes()), 0);
  EXPECT_EQ(found(4, XdrWriter().text("nowhere").bytes()), std::nullopt);
  EXPECT_EQ(found(4, XdrWriter().text(std::string(65, '1')).bytes()), std::nullopt);
  EXPECT_EQ(found(4, XdrWriter().word(0xfffffffe).bytes()), std::nullopt);
  for (std::size_t size = 0; size < answer.size(); ++size)
    EXPECT_EQ(found(4, std::span(answer).first(size)), std::nullopt) << size;
}

TEST(RpcbindMessages, a_registration_is_one_record_with_the_call) {
  XdrWriter wanted;
  wanted.word(0x80000000 | 80).word(5).word(0).word(2).word(100000).word(4).word(1).hyper(0).hyper(0);
  wanted.word(0x20000099).word(3).text("udp").text("127.0.0.1.94.147").text("");
  EXPECT_EQ(local_call(Procedure::set, 5, kServed), wanted.bytes());
  EXPECT_EQ(wanted.bytes().size(), 4 + 80U);
}

TEST(RpcbindMessages, a_question_for_all_entries_has_no_arguments) {
  const std::vector<std::byte> call = local_call(Procedure::dump, 5, kServed);
  EXPECT_EQ(
      call,
      XdrWriter().word(0x80000000 | 40).word(5).word(0).word(2).word(100000).word(4).word(4).hyper(0).hyper(0).bytes());
}

TEST(RpcbindMessages, an_answer_has_results_or_says_why_not) {
  const auto code = [](const XdrWriter& record) { return results_of(record.bytes(), 5).code(); };
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(0).hyper(0).word(0).word(7)), Errc::ok);
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(0).word(1).text("abc").word(0)), Errc::ok);
  EXPECT_EQ(code(XdrWriter().word(6).word(1).word(0).hyper(0).word(0)), Errc::bad_message);
  EXPECT_EQ(code(XdrWriter().word(5).word(0).word(0).hyper(0).word(0)), Errc::bad_message);
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(1).word(1).word(5)), Errc::not_permitted);
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(0).hyper(0).word(2).word(2).word(3)), Errc::version_mismatch);
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(0).hyper(0).word(5)), Errc::call_failed);
  EXPECT_EQ(code(XdrWriter().word(5).word(1).word(0).word(0).word(401).word(0)), Errc::bad_message);
  const std::vector<std::byte> right = XdrWriter().word(5).word(1).word(0).hyper(0).word(0).bytes();
  EXPECT_TRUE(results_of(right, 5)->empty());
  for (std::size_t size = 0; size < right.size(); ++size)
    EXPECT_EQ(results_of(std::span(right).first(size), 5).code(), Errc::bad_message) << size;
}

TEST(RpcbindMessages, a_change_is_done_or_not) {
  EXPECT_EQ(done(XdrWriter().word(1).bytes()), true);
  EXPECT_EQ(done(XdrWriter().word(0).bytes()), false);
  EXPECT_EQ(done(XdrWriter().word(2).bytes()), std::nullopt);
  EXPECT_EQ(done(XdrWriter().word(1).word(0).bytes()), std::nullopt);
  EXPECT_EQ(done({}), std::nullopt);
}

TEST(RpcbindMessages, a_list_has_an_entry_only_with_all_that_names_it) {
  const auto list = [](std::uint32_t program, std::uint32_t version, std::string_view network,
                       std::string_view address) {
    XdrWriter entries;
    entries.word(1).word(1).word(1).text("tcp").text("0.0.0.0.0.111").text("superuser");
    return entries.word(1).word(program).word(version).text(network).text(address).text("owner").word(0).bytes();
  };
  const std::vector<std::byte> right = list(kServed.program, 3, "udp", "127.0.0.1.94.147");
  EXPECT_TRUE(lists(right, kServed));
  EXPECT_FALSE(lists(list(kServed.program + 1, 3, "udp", "127.0.0.1.94.147"), kServed));
  EXPECT_FALSE(lists(list(kServed.program, 4, "udp", "127.0.0.1.94.147"), kServed));
  EXPECT_FALSE(lists(list(kServed.program, 3, "tcp", "127.0.0.1.94.147"), kServed));
  SunProgram over_tcp = kServed;
  over_tcp.transport = SunTransport::tcp;
  EXPECT_TRUE(lists(list(kServed.program, 3, "tcp", "127.0.0.1.94.147"), over_tcp));
  EXPECT_FALSE(lists(right, over_tcp));
  EXPECT_FALSE(lists(list(kServed.program, 3, "udp", "127.0.0.1.94.148"), kServed));
  for (std::size_t size = 0; size + 4 < right.size(); ++size)  // the last word, which ends the list, may be missing
    EXPECT_FALSE(lists(std::span(right).first(size), kServed)) << size;
}

}  // namespace
}  // namespace lrpc::netrpc::rpcbind
