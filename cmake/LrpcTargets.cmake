# One way to make a library, a program or a test of this project: warnings private, sanitizers in one place, aliases.

# lrpc_options(target): warnings and sanitizers, never seen by users of the target.
function(lrpc_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                           -Wnon-virtual-dtor -Woverloaded-virtual)
  if(LRPC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(LRPC_LIBFUZZER)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(LRPC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LRPC_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${LRPC_SANITIZE})
    if(LRPC_SANITIZE MATCHES "thread")
      target_compile_options(${target} PRIVATE -Wno-tsan)  # it does not model fences: what they order is atomic anyway
    endif()
  endif()
endfunction()

# lrpc_library(name SOURCES a.cpp ... DEPENDS lrpc::shim ... PRIVATE_DEPENDS ...): target lrpc_<name>, alias lrpc::<name>,
# public headers in include/, installed and exported as lrpc::<name>.
function(lrpc_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(lrpc_${name} STATIC ${ARG_SOURCES})
  add_library(lrpc::${name} ALIAS lrpc_${name})
  set_target_properties(lrpc_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(lrpc_${name} PUBLIC cxx_std_20)
  target_include_directories(lrpc_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE src)
  target_link_libraries(lrpc_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  lrpc_options(lrpc_${name})
  install(TARGETS lrpc_${name} EXPORT lrpc ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

# lrpc_program(target SOURCES ... DEPENDS ... [INSTALL]): an executable of the project.
function(lrpc_program target)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS})
  lrpc_options(${target})
  if(ARG_INSTALL)
    install(TARGETS ${target} EXPORT lrpc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# lrpc_test(target LABEL unit SOURCES ... DEPENDS ...): a GoogleTest program, each of its tests known to ctest by name.
function(lrpc_test target)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT LRPC_BUILD_TESTS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  lrpc_options(${target})
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX "${ARG_LABEL}." DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
